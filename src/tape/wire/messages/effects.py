"""Decisions, effects and obligations on the wire."""

from typing import Final

from tape.core.decision import Decision
from tape.core.effect import Compensation, Effect, EffectSpec, Observation
from tape.core.obligation import Obligation
from tape.wire import tape_pb2 as pb
from tape.wire.shape import Shape

DECISION: Final = Shape(Decision, pb.DecisionRecord)
DECIDED: Final = Shape(Decision, pb.RecordDecisionRequest)
COMPENSATION: Final = Shape(Compensation, pb.Compensation)
REGISTERED: Final = Shape(Compensation, pb.RegisterCompensationRequest)
ORDER: Final = Shape(EffectSpec, pb.BeginEffectRequest, {"tool": "tool_name"})
EFFECT: Final = Shape(
    Effect,
    pb.EffectRecord,
    {"tool": "tool_name"},
    {
        "claim": {
            "owner": "dispatch_claimed_by",
            "attempt": "attempt",
            "expires_at_ms": "dispatch_claim_expires_at_ms",
        }
    },
)
OBSERVATION: Final = Shape(Observation, pb.RecordExternalObservationRequest)
OBLIGATION: Final = Shape(
    Obligation,
    pb.ObligationRecord,
    {"number": "seq"},
    {"claim": {"owner": "claimer", "attempt": "attempt", "expires_at_ms": "claim_expires_at_ms"}},
)
