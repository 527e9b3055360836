"""Operations of gates and timers: a run waits for a signal, or has work at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.claim import WORK_LEASE
from tape.core.errors import UsageError
from tape.core.event import check_run_id
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.timer import Timer, TimerClaim, TimerStatus
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

LIMIT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitSignal(OperationRequest[WaitResult]):
    """The signal for a run's n-th wait at a gate; without one the run is parked."""

    run_id: str
    gate: str
    index: int = 0
    context_json: str = ""
    fence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSignal(OperationRequest[SignalResult]):
    """Sends a signal to a gate of a run, or without a run id of the newest run of a session; with a key, once."""

    gate: str
    run_id: str = ""
    resolution_json: str = "null"
    key: str | None = None
    app: str = ""
    user: str = ""
    session: str = ""

    def check(self) -> None:
        if self.run_id and (self.app or self.user or self.session):
            raise UsageError("name a run or a session, not both")
        if not self.app:
            check_run_id(self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetGate(OperationRequest[Gate | None]):
    """A gate of a run, with the signals sent to it."""

    run_id: str
    gate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGates(PageRequest[Gate]):
    """The gates of a run, by name; without a run, the gates that runs wait at now, by run."""

    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer(OperationRequest[Timer]):
    """Sets a timer, or changes it, for the workers of an app; without an id it gets one."""

    run_id: str
    fire_at_ms: int
    timer_id: str = ""
    kind: str = ""
    payload_json: str = ""
    app: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTimer(OperationRequest[bool]):
    """Cancels a timer; whether there was one."""

    run_id: str
    timer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTimer(OperationRequest[Timer | None]):
    """A timer of a run."""

    run_id: str
    timer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimers(PageRequest[Timer]):
    """Timers by run and time, of one run or of all: all, or those with one status or of one kind.

    A timer that is set to another time while pages are read may be listed twice or left out; any other is listed once.
    """

    run_id: str | None = None
    status: TimerStatus | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDueTimers(OperationRequest[Sequence[Timer]]):
    """Timers that are due and not claimed, the longest due first; with `claim`, they are leased to the owner.

    With an app and kinds, only those that such a worker can serve. Timers that are claimed without an owner are fired.
    """

    limit: int = LIMIT
    now_ms: int | None = None
    app: str = ""
    kinds: tuple[str, ...] | None = None
    claim: bool = False
    claimer: str = ""
    lease: timedelta = WORK_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTimer(OperationRequest[TimerClaim]):
    """Leases a due timer to a handler of its app."""

    run_id: str
    timer_id: str
    owner: str
    lease: timedelta = WORK_LEASE
    app: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FireTimer(OperationRequest[Timer]):
    """Confirms that a timer was handled; one that was cancelled meanwhile stays so and is refused."""

    run_id: str
    timer_id: str
    attempt: int


OPERATIONS: Final = (
    Operation("gate.wait", AwaitSignal, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("gate.send", SendSignal, Access.WRITE, Scope.RUN, Repeat.KEYED),
    Operation("gate.get", GetGate, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("gate.list", ListGates, Access.READ, Scope.NODE, Repeat.SAFE, Shape.PAGE),
    Operation("timer.set", SetTimer, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("timer.cancel", CancelTimer, Access.WRITE, Scope.RUN, Repeat.SAME),
    Operation("timer.get", GetTimer, Access.READ, Scope.RUN, Repeat.SAFE),
    Operation("timer.list", ListTimers, Access.READ, Scope.NODE, Repeat.SAFE, Shape.PAGE),
    Operation("timer.due", ListDueTimers, Access.WRITE, Scope.NODE, Repeat.AGAIN),
    Operation("timer.claim", ClaimTimer, Access.WRITE, Scope.RUN, Repeat.AGAIN),
    Operation("timer.fire", FireTimer, Access.WRITE, Scope.RUN, Repeat.SAME),
)
