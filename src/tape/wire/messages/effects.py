"""Decisions, effects and obligations on the wire."""

from typing import Final

from tape.core.decision import Decision
from tape.core.effect import Compensation, Effect
from tape.core.obligation import Obligation
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping

DECISION: Final = MessageMapping(Decision, pb.DecisionRecord)
COMPENSATION: Final = MessageMapping(Compensation, pb.Compensation, zero_is_default=("max_attempts",))
EFFECT: Final = MessageMapping(
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
OBLIGATION: Final = MessageMapping(
    Obligation,
    pb.ObligationRecord,
    {"number": "seq"},
    {"claim": {"owner": "claimer", "attempt": "attempt", "expires_at_ms": "claim_expires_at_ms"}},
)
