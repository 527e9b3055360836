"""The ledgers as clients use them, in this process or over gRPC; Tape does not interpret the JSON bodies."""

from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Protocol, Self

from tape.core.budget import Admission, Amount, Budget
from tape.core.caller import PLAIN, Caller
from tape.core.claim import RUN_LEASE, WORK_LEASE
from tape.core.decision import Decision
from tape.core.effect import IN_DOUBT, Compensation, Effect, EffectClaim, EffectSpec, EffectStatus, Observation
from tape.core.event import Entry, Event
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.ids import RunId
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.run_state import Compaction, RunClaim, RunSpec, RunState, RunStatus
from tape.core.session import Session, SessionEvent, SessionId
from tape.core.timer import Timer, TimerClaim
from tape.core.value import Value, ValueChange


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStreamOptions:
    """Which entries to stream: those of a run from a seq on, or of the journal after a position."""

    run_id: str | None = None
    from_seq: int = 1
    subject: str | None = None
    where: str | None = None
    from_global_seq: int = 0
    follow: bool = True


class RunLedger(Protocol):
    """A run begins once, is leased to one worker at a time, and ends for good; a stale worker changes nothing."""

    async def begin(self, spec: RunSpec, caller: Caller = PLAIN) -> RunClaim: ...
    async def take(self, run_id: str, owner: str, lease: timedelta = RUN_LEASE, caller: Caller = PLAIN) -> RunClaim: ...
    async def heartbeat(self, run_id: str, attempt: int) -> RunState: ...
    async def end(
        self, run_id: str, status: RunStatus, detail_json: str = "", fence: int | None = None, caller: Caller = PLAIN
    ) -> RunState: ...
    async def find(self, run_id: str) -> RunState: ...
    async def newest(self, app: str, user: str, session: str) -> RunId: ...
    async def to_recover(
        self, app: str | None = None, limit: int = 100, now_ms: int | None = None
    ) -> Sequence[RunState]: ...


class CompactionLedger(Protocol):
    """Compacts settled runs, each once."""

    async def compactable(self, before_ms: int, limit: int = 100) -> Sequence[RunState]: ...
    async def compact(self, run_id: str, caller: Caller = PLAIN) -> Compaction: ...


class DecisionLedger(Protocol):
    """The first decision recorded at an index stays."""

    async def record(self, decision: Decision, fence: int | None = None, caller: Caller = PLAIN) -> Decision: ...
    async def find(self, run_id: str, decision_index: int) -> Decision | None: ...
    async def listed(self, run_id: str) -> Sequence[Decision]: ...


class EffectLedger(Protocol):
    """An effect is recorded before it is done; its outcome is recorded once."""

    async def begin(self, spec: EffectSpec, fence: int | None = None, caller: Caller = PLAIN) -> Effect: ...
    async def complete(
        self, run_id: str, idempotency_key: str, status: EffectStatus, response_json: str = "", error_json: str = "",
        fence: int | None = None, caller: Caller = PLAIN,
    ) -> Effect: ...  # fmt: skip
    async def reconcile(
        self, run_id: str, idempotency_key: str, status: EffectStatus, response_json: str = "", error_json: str = "",
        caller: Caller = PLAIN,
    ) -> Effect: ...  # fmt: skip
    async def find(self, run_id: str, idempotency_key: str) -> Effect | None: ...
    async def listed(self, run_id: str) -> Sequence[Effect]: ...
    async def in_doubt(
        self, older_than_ms: int = 0, limit: int = 200, among: Collection[EffectStatus] = IN_DOUBT
    ) -> Sequence[Effect]: ...


class DispatchLedger(Protocol):
    """One dispatcher holds an effect at a time; a non-idempotent one is offered once."""

    async def due(
        self, connector: str = "", limit: int = 200, now_ms: int | None = None, app: str = ""
    ) -> Sequence[Effect]: ...
    async def claim(
        self, run_id: str, idempotency_key: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN,
        app: str = "",
    ) -> EffectClaim: ...  # fmt: skip
    async def attempt(
        self, run_id: str, idempotency_key: str, attempt_number: int, error: str, next_dispatch_at_ms: int = 0,
        caller: Caller = PLAIN,
    ) -> Effect: ...  # fmt: skip
    async def observe(self, run_id: str, idempotency_key: str, seen: Observation, caller: Caller = PLAIN) -> Effect: ...
    async def mark_lost_in_doubt(self, limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]: ...


class ObligationLedger(Protocol):
    """Obligations of a failed run are compensated newest first, one at a time; those of other runs wait."""

    async def register(self, run_id: str, effect_key: str, how: Compensation, caller: Caller = PLAIN) -> Obligation: ...
    async def listed(self, run_id: str, *, only_unresolved: bool = False) -> Sequence[Obligation]: ...
    async def due(
        self, limit: int = 500, now_ms: int | None = None, *, app: str = "", compensators: Sequence[str] | None = None
    ) -> Sequence[Obligation]: ...
    async def stuck(self, limit: int = 500) -> Sequence[Obligation]: ...
    async def claim(
        self, run_id: str, number: int, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN,
        app: str = "",
    ) -> ObligationClaim: ...  # fmt: skip
    async def attempt(
        self, run_id: str, number: int, attempt: int, error: str, next_attempt_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Obligation: ...
    async def resolve(
        self, run_id: str, number: int, status: ObligationStatus = ObligationStatus.COMPENSATED, result_json: str = "",
        attempt: int | None = None, caller: Caller = PLAIN,
    ) -> Obligation: ...  # fmt: skip


class GateLedger(Protocol):
    """The n-th wait at a gate gets the n-th signal, whichever comes first, however often it asks."""

    async def wait(
        self, run_id: str, gate: str, index: int = 0, context_json: str = "", fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> WaitResult: ...  # fmt: skip
    async def send(
        self, run_id: str, gate: str, resolution_json: str = "", key: str | None = None, caller: Caller = PLAIN
    ) -> SignalResult: ...
    async def find(self, run_id: str, gate: str) -> Gate | None: ...


class TimerLedger(Protocol):
    """A timer is handled at least once after it is due."""

    async def set(
        self, run_id: str, timer_id: str, fire_at_ms: int, kind: str = "", payload_json: str = "",
        caller: Caller = PLAIN, app: str = "",
    ) -> Timer: ...  # fmt: skip
    async def cancel(self, run_id: str, timer_id: str, caller: Caller = PLAIN) -> bool: ...
    async def due(
        self, limit: int = 200, now_ms: int | None = None, *, app: str = "", kinds: Sequence[str] | None = None
    ) -> Sequence[Timer]: ...
    async def claim(
        self, run_id: str, timer_id: str, owner: str, lease: timedelta = WORK_LEASE, caller: Caller = PLAIN,
        app: str = "",
    ) -> TimerClaim: ...  # fmt: skip
    async def fire(self, run_id: str, timer_id: str, attempt: int, caller: Caller = PLAIN) -> Timer: ...


class BudgetLedger(Protocol):
    """Spent and reserved amounts together never exceed a cap, however many callers reserve at once."""

    async def set(
        self, run_id: str, usd_cap: float | Decimal | None = None, token_cap: int | None = None,
        caller: Caller = PLAIN,
    ) -> Budget: ...  # fmt: skip
    async def admit(self, run_id: str, asked: Amount) -> Admission: ...
    async def reserve(self, run_id: str, reservation_id: str, asked: Amount, caller: Caller = PLAIN) -> Admission: ...
    async def settle(self, run_id: str, reservation_id: str, spent: Amount, caller: Caller = PLAIN) -> Budget: ...
    async def charge(self, run_id: str, spent: Amount, key: str | None = None, caller: Caller = PLAIN) -> Budget: ...
    async def find(self, run_id: str) -> Budget: ...


class Watching(Protocol):
    """Versions of a value as they are written, each once; the caller must close it."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> ValueChange: ...
    async def aclose(self) -> None: ...


class ValueLedger(Protocol):
    """Each write is a version and an entry; a write based on a stale version is refused."""

    async def write(
        self, namespace: str, key: str, value_json: str, if_version: int | None = None, writer: str = "",
        call_key: str | None = None, caller: Caller = PLAIN,
    ) -> Value: ...  # fmt: skip
    async def delete(
        self, namespace: str, key: str, if_version: int | None = None, writer: str = "", call_key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value: ...  # fmt: skip
    async def find(self, namespace: str, key: str) -> Value: ...
    async def listed(self, namespace: str) -> Sequence[Value]: ...
    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> Watching: ...


class SessionLedger(Protocol):
    """A session's event is appended once, together with its change of state."""

    async def create(
        self, app: str, user: str, session: str = "", state_json: str = "{}", caller: Caller = PLAIN
    ) -> Session: ...
    async def append(
        self, of: SessionId, event: SessionEvent, state_delta_json: str = "{}", caller: Caller = PLAIN
    ) -> Session: ...
    async def find(self, of: SessionId, max_events: int | None = None) -> Session: ...
    async def listed(self, app: str, user: str) -> Sequence[Session]: ...
    async def delete(self, of: SessionId, caller: Caller = PLAIN) -> bool: ...


class Following(Protocol):
    """Entries in order, each once; the caller must close it."""

    def __aiter__(self) -> AsyncIterator[Entry]: ...
    def __anext__(self) -> Awaitable[Entry]: ...
    def aclose(self) -> Awaitable[None]: ...


class EventLog(Protocol):
    """Appends and streams events; a stream misses nothing from the moment it is returned."""

    async def append(
        self, events: Sequence[Event], key: str | None = None, expected_seq: int | None = None, open: bool = False
    ) -> Sequence[Entry]: ...
    async def stream(self, options: LedgerStreamOptions) -> Following: ...


class Ledgers(Protocol):
    """All ledgers of one store, and its journal."""

    @property
    def events(self) -> EventLog: ...

    @property
    def runs(self) -> RunLedger: ...
    @property
    def compactions(self) -> CompactionLedger: ...
    @property
    def decisions(self) -> DecisionLedger: ...
    @property
    def effects(self) -> EffectLedger: ...
    @property
    def dispatch(self) -> DispatchLedger: ...
    @property
    def obligations(self) -> ObligationLedger: ...
    @property
    def gates(self) -> GateLedger: ...
    @property
    def timers(self) -> TimerLedger: ...
    @property
    def budgets(self) -> BudgetLedger: ...
    @property
    def values(self) -> ValueLedger: ...
    @property
    def sessions(self) -> SessionLedger: ...
