"""The records of all ledgers on the wire."""

from typing import Any, Final

from tape.core.budget import MICROS, Amount, Budget
from tape.core.decision import Decision
from tape.core.effect import Compensation, Effect
from tape.core.gate import Gate
from tape.core.ids import RunId
from tape.core.obligation import Obligation
from tape.core.run_state import Compaction, RunClaim, RunState
from tape.core.session import Session, SessionEvent
from tape.core.timer import Timer
from tape.core.value import Value, ValueChange
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping, build, number

NAMES_OF_RUN: Final = {"app": "app_name", "user": "user_id", "session": "session_id", "invocation": "invocation_id"}
LEASE: Final = {"owner": "lease_owner", "attempt": "attempt", "expires_at_ms": "lease_expires_at_ms"}
CLAIM: Final = {"owner": "claimer", "attempt": "attempt", "expires_at_ms": "claim_expires_at_ms"}
DISPATCH: Final = {
    "owner": "dispatch_claimed_by", "attempt": "attempt", "expires_at_ms": "dispatch_claim_expires_at_ms"
}  # fmt: skip

RUN: Final = MessageMapping(
    RunState, pb.RunState, {"lease_ms": "lease_ttl_ms"}, {"of": NAMES_OF_RUN, "claim": LEASE, "identity": NO_NAMES}
)
COMPACTION: Final = MessageMapping(Compaction, pb.CompactionReport)
DECISION: Final = MessageMapping(Decision, pb.DecisionRecord)
COMPENSATION: Final = MessageMapping(Compensation, pb.Compensation, zero_is_default=("max_attempts",))
EFFECT: Final = MessageMapping(Effect, pb.EffectRecord, {"tool": "tool_name"}, {"claim": DISPATCH})
OBLIGATION: Final = MessageMapping(Obligation, pb.ObligationRecord, {"number": "seq"}, {"claim": CLAIM})
GATE: Final = MessageMapping(Gate, pb.GateRecord)
TIMER: Final = MessageMapping(Timer, pb.TimerRecord, within={"claim": CLAIM})
VALUE: Final = MessageMapping(Value, pb.ValueRecord)
CHANGE: Final = MessageMapping(ValueChange, pb.ValueChange)
SESSION_EVENT: Final = MessageMapping(SessionEvent, pb.SessionEvent)
SESSION: Final = MessageMapping(
    Session,
    pb.Session,
    {"incarnation": "life"},
    {"of": {"app": "app_name", "user": "user_id", "session": "session_id"}},
)


def resumed(begun: RunClaim) -> pb.RunState:
    """The run for a caller that has just begun or taken it."""
    own: dict[str, Any] = {
        "seq_cursor": begun.next_seq, "resumed": begun.is_resumed, "acquired": begun.is_acquired
    }  # fmt: skip
    return RUN.message(begun.run, **own)


def begun(begun: RunClaim) -> pb.BeginRunResponse:
    return build(
        pb.BeginRunResponse,
        run_id=begun.run.run_id,
        resumed=begun.is_resumed,
        next_seq=begun.next_seq,
        status=number(begun.run.status),
        acquired=begun.is_acquired,
        run=resumed(begun),
    )


def begun_value(run: pb.RunState) -> RunClaim:
    return RunClaim(run=RUN.value(run), is_resumed=run.resumed, is_acquired=run.acquired, next_seq=run.seq_cursor)


def budget(budget: Budget) -> pb.BudgetState:
    """Dollars as a fraction, which holds every millionth up to two billion."""
    return build(
        pb.BudgetState,
        run_id=budget.run_id,
        usd_cap=None if budget.usd_cap_micros is None else budget.usd_cap_micros / MICROS,
        token_cap=budget.token_cap,
        usd_spent=budget.spent.usd,
        tokens_spent=budget.spent.tokens,
        usd_reserved=budget.reserved.usd,
        tokens_reserved=budget.reserved.tokens,
    )


def budget_value(message: pb.BudgetState) -> Budget:
    return Budget(
        run_id=RunId(message.run_id),
        usd_cap_micros=Amount.of(message.usd_cap).usd_micros if message.HasField("usd_cap") else None,
        token_cap=message.token_cap if message.HasField("token_cap") else None,
        spent=Amount.of(message.usd_spent, message.tokens_spent),
        reserved=Amount.of(message.usd_reserved, message.tokens_reserved),
    )
