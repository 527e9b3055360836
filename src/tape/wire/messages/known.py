"""Gates, timers, budgets, values and sessions on the wire."""

from typing import Final

from tape.core.budget import MICROS, Amount, Budget
from tape.core.gate import Gate
from tape.core.ids import RunId
from tape.core.session import Session, SessionEvent
from tape.core.timer import Timer
from tape.core.value import Value, ValueChange
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping, build

GATE: Final = MessageMapping(Gate, pb.GateRecord)
TIMER: Final = MessageMapping(
    Timer,
    pb.TimerRecord,
    within={"claim": {"owner": "claimer", "attempt": "attempt", "expires_at_ms": "claim_expires_at_ms"}},
)
VALUE: Final = MessageMapping(Value, pb.ValueRecord)
CHANGE: Final = MessageMapping(ValueChange, pb.ValueChange)
SESSION_EVENT: Final = MessageMapping(SessionEvent, pb.SessionEvent)
SESSION: Final = MessageMapping(
    Session,
    pb.Session,
    {"incarnation": "life"},
    {"of": {"app": "app_name", "user": "user_id", "session": "session_id"}},
)


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


def budget_value(said: pb.BudgetState) -> Budget:
    return Budget(
        run_id=RunId(said.run_id),
        usd_cap_micros=Amount.of(said.usd_cap).usd_micros if said.HasField("usd_cap") else None,
        token_cap=said.token_cap if said.HasField("token_cap") else None,
        spent=Amount.of(said.usd_spent, said.tokens_spent),
        reserved=Amount.of(said.usd_reserved, said.tokens_reserved),
    )
