"""Transitions of a run: it begins once, is leased to one worker at a time, and ends for good."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Final

from tape.core.claim import Claim
from tape.core.codec import JsonValue
from tape.core.errors import NotFound, RunClosed, UsageError
from tape.core.ids import RunId
from tape.core.ports import CellSnapshot
from tape.core.run_state import ENDINGS, FINAL, Compaction, RunClaim, RunSpec, RunState, RunStatus
from tape.core.sequence import CellChange
from tape.runs.ledger import Ledger, LedgerEvent, Transition, check_repeat, parts

# Status of a run's cell; its due time is when the run may be taken, or when it ended.
LEASED: Final = "leased"
READY: Final = "ready"
PARKED: Final = "parked"
UNWINDING: Final = "unwinding"
ENDED: Final = "ended"
COMPACTED: Final = "compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest run of a session."""

    run_id: RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """A run's obligations: how many it ever had, how many are open, and how many of those are due at once.

    The others are due when the run has failed and is unwinding. `newest` and `newest_urgent` are the app and
    compensator of the next obligation in each case.
    """

    count: int = 0
    owed: int = 0
    urgent: int = 0
    is_unwinding: bool = False
    newest: tuple[str, str] = ("", "")
    newest_urgent: tuple[str, str] = ("", "")

    @property
    def is_due(self) -> bool:
        return bool(self.urgent or (self.is_unwinding and self.owed))

    def index(self, due_at_ms: int) -> tuple[str, int | None, tuple[str, str] | None]:
        """Status, due time and workers of its cell."""
        if not self.is_due:
            return "held", None, None
        return "due", due_at_ms, self.newest if self.is_unwinding else self.newest_urgent


# Runs that wait are listed, so that the gates they wait at are.
RUNS: Final = Ledger("run", RunState, lambda run: run.run_id if run.status is RunStatus.WAITING else None)
NEWEST: Final = Ledger("newest", Newest)
DEBTS: Final = Ledger("debt", Debt)
COMPACTIONS: Final = Ledger("compaction", Compaction)


def begin(snapshot: CellSnapshot, spec: RunSpec) -> Transition[RunClaim]:
    """Begins a run for a new invocation; for a known one, takes the existing run."""
    stored = RUNS.find(snapshot, spec.of.run_id)
    if stored is not None:
        return take(snapshot, stored.run_id, spec.owner, spec.lease, is_resumed=True)
    run = _new(spec, snapshot.now_ms)
    newest = NEWEST.change(snapshot, session_key(run), Newest(run_id=run.run_id), "newest")
    result = RunClaim(run=run, is_resumed=False, is_acquired=bool(spec.owner))
    return Transition(result=result, cells=(changed(snapshot, run), newest), events=(event_of(run),), opens=True)


def take(
    snapshot: CellSnapshot, run_id: RunId, owner: str, lease: timedelta, *, is_resumed: bool = True
) -> Transition[RunClaim]:
    """Leases a run to an owner, unless it has ended or another owner's lease is live."""
    run = find(snapshot, run_id)
    is_held = run.claim.is_live(snapshot.now_ms) and run.claim.owner != owner
    if not owner or is_held or not run.is_active:
        return Transition(result=RunClaim(run=run, is_resumed=is_resumed, is_acquired=False))
    claim = run.claim.taken(owner, lease, snapshot.now_ms)
    lease_ms = claim.expires_at_ms - snapshot.now_ms
    taken = replace(run, status=RunStatus.RUNNING, claim=claim, lease_ms=lease_ms, waiting_on_gate="")
    result = RunClaim(run=taken, is_resumed=is_resumed, is_acquired=True)
    return Transition(result=result, cells=(changed(snapshot, taken),), events=(event_of(taken),), opens=True)


def heartbeat(snapshot: CellSnapshot, run_id: RunId, attempt: int) -> Transition[RunState]:
    """Renews the owner's lease; a run that has ended or is parked is returned unchanged."""
    run = find(snapshot, run_id)
    if not run.is_active:
        return Transition(result=run)
    run.claim.check_newest(f"run {run_id!r}", attempt)
    if not run.claim.owner:
        return Transition(result=run)
    alive = renewed(run, snapshot.now_ms)
    return Transition(result=alive, cells=(changed(snapshot, alive),))


def end(
    snapshot: CellSnapshot, run_id: RunId, status: RunStatus, detail_json: str = "", fence: int | None = None
) -> Transition[RunState]:
    """Ends a run; one that has ended for good refuses another end, and any end another detail.

    The obligations of a failed run become due.
    """
    if status not in ENDINGS:
        raise UsageError(f"a run ends as {', '.join(sorted(ENDINGS))}, not {status}")
    run = find(snapshot, run_id)
    debt = DEBTS.find(snapshot, run_id) or Debt()
    if run.status in FINAL or run.status is status:
        check_repeat(f"the end of run {run_id!r}", (run.status, run.detail_json), (status, detail_json))
    if run.status is status:
        return Transition(result=run, closes=closable(run, debt))
    if fence is not None:
        run.claim.check_newest(f"run {run_id!r}", fence)
    ended = replace(
        run, status=status, claim=run.claim.released(), waiting_on_gate="", ended_at_ms=snapshot.now_ms,
        detail_json=detail_json,
    )  # fmt: skip
    debt = replace(debt, is_unwinding=status is not RunStatus.TERMINAL)
    owing = DEBTS.change(snapshot, run_id, debt, *debt.index(snapshot.now_ms))
    cells = (changed(snapshot, ended), owing)
    return Transition(result=ended, cells=cells, events=(event_of(ended),), opens=True, closes=closable(ended, debt))


def find(snapshot: CellSnapshot, run_id: RunId) -> RunState:
    run = RUNS.find(snapshot, run_id)
    if run is None:
        raise NotFound(f"no run {run_id!r} was begun here")
    return run


def active(snapshot: CellSnapshot, run_id: RunId) -> RunState:
    """The run, if it has not ended; else raises RunClosed."""
    run = find(snapshot, run_id)
    if not run.is_active:
        raise RunClosed(run_id)
    return run


def is_compacted(snapshot: CellSnapshot, run_id: str) -> bool:
    """Whether the bodies of the run's records are deleted, or a compaction has begun to delete them."""
    return COMPACTIONS.at(run_id) in snapshot.cells


def fenced(snapshot: CellSnapshot, run: RunState, fence: int | None) -> tuple[CellChange, ...]:
    """Checks a worker's attempt number, and renews its lease in the same request."""
    if fence is None:
        return ()
    run.claim.check_newest(f"run {run.run_id!r}", fence)
    if not run.is_active:
        return ()
    return (changed(snapshot, renewed(run, snapshot.now_ms) if run.claim.owner else run),)


def renewed(run: RunState, now_ms: int) -> RunState:
    return replace(run, claim=run.claim.renewed(timedelta(milliseconds=run.lease_ms), now_ms))


def parked(run: RunState, gate: str) -> RunState:
    """A run that waits at a gate without a worker."""
    return replace(run, status=RunStatus.WAITING, claim=run.claim.released(), waiting_on_gate=gate)


def released(run: RunState) -> RunState:
    """A run that any worker may take."""
    return replace(run, status=RunStatus.RUNNABLE, waiting_on_gate="")


def changed(snapshot: CellSnapshot, run: RunState) -> CellChange:
    return RUNS.change(snapshot, run.run_id, run, *_index(run))


def closable(run: RunState, debt: Debt) -> RunId | None:
    """The run's id, if nothing more will be written to it."""
    return None if run.is_active or debt.is_due else run.run_id


def cause_of(snapshot: CellSnapshot, run_id: RunId) -> int | None:
    """The cause of everything that a run writes: the entry that it was begun for."""
    run = RUNS.find(snapshot, run_id)
    return None if run is None else run.cause


def session_key(run: RunState) -> str:
    return parts(run.of.app, run.of.user, run.of.session)


def event_of(run: RunState, more: Mapping[str, JsonValue] | None = None) -> LedgerEvent:
    """The entry of a run's transition."""
    of, detail = run.of, {"detail_json": run.detail_json} if run.detail_json else {}
    payload: dict[str, JsonValue] = {
        "app": of.app, "user": of.user, "session": of.session, "run_id": run.run_id, "invocation_id": of.invocation,
        "status": run.status.value, "lease_owner": run.claim.owner, "attempt": run.claim.attempt,
        **asdict(run.identity), "scopes": list(run.scopes), "labels": dict(run.labels), **detail, **(more or {}),
    }  # fmt: skip
    dims = (of.app, of.user, of.session, run.run_id)
    return LedgerEvent(run_id=run.run_id, kind="run", verb=run.status.value, dims=dims, payload=payload)


def _new(spec: RunSpec, now_ms: int) -> RunState:
    claim = Claim().taken(spec.owner, spec.lease, now_ms) if spec.owner else Claim()
    return RunState(
        run_id=spec.of.run_id,
        of=spec.of,
        status=RunStatus.RUNNING if spec.owner else RunStatus.RUNNABLE,
        claim=claim,
        lease_ms=spec.lease // timedelta(milliseconds=1),
        started_at_ms=now_ms,
        identity=spec.identity,
        scopes=spec.scopes,
        labels=dict(spec.labels),
        cause=spec.cause,
    )


def _index(run: RunState) -> tuple[str, int | None]:
    match run.status:
        case RunStatus.RUNNABLE:
            return READY, run.started_at_ms
        case RunStatus.RUNNING:
            return LEASED, run.claim.expires_at_ms
        case RunStatus.WAITING:
            return PARKED, None
        case RunStatus.COMPENSATING:
            return UNWINDING, None
        case _:
            return (COMPACTED, None) if run.compacted_at_ms else (ENDED, run.ended_at_ms)
