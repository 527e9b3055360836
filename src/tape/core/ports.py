"""The ports between packages; each docstring states what every implementation guarantees."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from tape.core.envelope import EventEnvelope
from tape.core.errors import StaleClaim, TapeError
from tape.core.event import Entry, Event
from tape.core.fork import Segment
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.matched import MatchCursor, MatchedPage, ReactionRecord, Recorded
from tape.core.page import ANSWER_BYTES, PagePosition
from tape.core.reaction import Reaction
from tape.core.run import Head, LiveRun, RunMeta, RunRecord
from tape.core.run_query import MAX_PAGE, RunPosition, RunQuery
from tape.core.sequence import AppendRequest, Cell, CellId
from tape.core.subject import Pattern
from tape.core.task import Claimed, ClaimRequest, Match, Outcomes, Settlement, Task, TaskClaim, TaskId
from tape.core.term import Term

AppendOutcome: TypeAlias = Sequence[Entry] | TapeError

NO_EPOCH: Final = Epoch(0)  # a copy of a journal does not know the epoch


class Bounds(NamedTuple):
    """The first and last position of a journal; it is empty when the floor is above the head."""

    floor: GlobalSeq
    head: GlobalSeq


class Page(NamedTuple):
    """All matching entries up to `scanned_to`, with the bounds and the epoch of the same snapshot.

    `changes` differs whenever a run was opened, closed or trimmed other than by an append; None: unknown.
    """

    entries: Sequence[Entry]
    scanned_to: GlobalSeq
    bounds: Bounds
    changes: int | None = None
    epoch: Epoch = NO_EPOCH


class RunPage(NamedTuple):
    """Entries of a run with its head (None: no such run), and the journal's bounds and epoch of the same snapshot.

    When it was read by segments, `floors` has the first seq of each run that owns one of them.
    """

    entries: Sequence[Entry]
    run: Head | None
    bounds: Bounds
    floors: Mapping[RunId, Seq] = MappingProxyType({})
    epoch: Epoch = NO_EPOCH


class Reader(Protocol):
    """Reads a journal, or a copy of it, in the order of positions.

    Within an epoch, entries at or below a position that was read never change and never increase. A cursor belongs to
    the epoch that the page names; a reader with a cursor of another epoch asks the `terms` whether it may continue. An
    entry whose bytes are corrupt, or that is missing above the floor, raises `Corrupt` in its place, whether or not a
    pattern would have matched it; the entries before it are returned first. A run with ancestors is read by its
    segments, which begin after the seq; entries that are gone are left out.
    """

    async def bounds(self) -> Bounds: ...
    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page: ...
    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage: ...


class TermReader(Reader, Protocol):
    """Reads the journal itself, which knows the terms it continues from and the present one."""

    async def terms(self) -> Sequence[Term]: ...


class Journal(TermReader, Protocol):
    """The ordered log.

    `append` decides requests in order, as `sequence.decide` does, and returns an outcome for each. What it accepted is
    as durable as the store can make it. `wait` returns when the journal may have grown beyond a position or a run may
    have ended; it may return early.
    """

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...


class RunDirectory(Protocol):
    """All runs, and which of them are open.

    A run keeps its numbers: reopening it continues at its last seq plus one. Closing it again changes nothing. An open
    run cannot be opened or reaped. A run opened by a named producer is leased to it. `renew` returns the runs that the
    producer still holds, and with `adopts` also takes the lease of open runs that nobody holds. `close_silent` closes
    the runs whose producer has not renewed for that long. Both use the store's clock. `listed` returns the runs that
    match, those after a position, at most `MAX_PAGE` and one more; a database reads them along an index, so that their
    number does not matter.
    """

    async def open(self, run_id: RunId, meta: RunMeta, producer: str | None = None) -> Head: ...
    async def close(self, run_id: RunId) -> Head: ...
    async def reap(self, run_id: RunId) -> None: ...
    async def renew(self, producer: str, run_ids: Sequence[RunId], *, adopts: bool = False) -> Sequence[RunId]: ...
    async def close_silent(self, silence: timedelta) -> Mapping[RunId, Head]: ...
    async def find(self, run_id: RunId) -> RunRecord | None: ...
    async def listed(
        self, query: RunQuery, limit: int = MAX_PAGE, after: RunPosition | None = None
    ) -> Sequence[RunRecord]: ...
    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]: ...


class CellSnapshot(NamedTuple):
    """Cells as they were at one moment of the store's clock; an absent cell does not exist."""

    now_ms: int
    cells: Mapping[CellId, Cell]


class DueCursor(NamedTuple):
    """Where a list of due cells continues: after this time and key."""

    due_at_ms: int = -1
    key: str = ""


DUE_START: Final = DueCursor()


class WorkFilter(NamedTuple):
    """The work that a worker can serve: of these apps and of these kinds."""

    apps: tuple[str, ...]
    kinds: tuple[str, ...]


class CellQuery(NamedTuple):
    """The cells of a list: of a ledger, with one of these statuses, below a parent if one is given, and of a kind."""

    ledger: str
    statuses: tuple[str, ...]
    parent: str = ""
    kind: str = ""


class Cells(Protocol):
    """The rows of all ledgers; only a request changes them.

    `due` lists the cells of a ledger and status that are due, earliest first; with `served`, only those that match it.
    `under` lists the cells whose key begins with a parent and a slash, in the order of keys. `listed` lists those that
    match a query in the order of their places, after one, and ends with the cell that exceeds a number of bytes. Each
    returns one page; cells that are filtered out take no place in it.
    """

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]: ...
    async def snapshot(self, ids: Sequence[CellId]) -> CellSnapshot: ...
    async def due(
        self, ledger: str, status: str, through_ms: int, limit: int, after: DueCursor = DUE_START,
        served: WorkFilter | None = None,
    ) -> Mapping[CellId, Cell]: ...  # fmt: skip
    async def under(self, ledger: str, parent: str, limit: int, after: str = "") -> Mapping[CellId, Cell]: ...
    async def listed(
        self, query: CellQuery, limit: int, after: str = "", max_bytes: int = ANSWER_BYTES
    ) -> Mapping[CellId, Cell]: ...


class Queue(Protocol):
    """Work that is leased, by the store's clock.

    A claim counts as an attempt, and only the newest attempt may extend its lease or settle; any other gets a
    `StaleClaim`. A task that is not settled before its lease ends is claimed again, or is dead after its last attempt.
    However many workers claim, a reaction's limits on leases and starts hold.
    """

    async def claim(self, request: ClaimRequest) -> Claimed: ...
    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]: ...
    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]: ...


class Tasks(Queue, Protocol):
    """All tasks. Replaying a dead task resets its attempts but keeps its fencing number.

    A task that dies or is replayed writes an entry, except those that end because their reaction is removed: the
    removal's entry covers them. `made_of` is an entry's task, or the first of a newer entry of the same subject. `make`
    creates the missing tasks and returns how many. `listed` returns the newest first, those before a position, up to a
    number of bytes; bare tasks have no payloads.
    """

    async def find(self, task_id: TaskId) -> Task | None: ...
    async def made_of(self, reaction_id: str, global_seq: int, subject: str) -> Task | None: ...
    async def make(self, matches: Sequence[Match]) -> int: ...
    async def listed(
        self,
        *,
        reaction_id: str = "",
        status: int = 0,
        limit: int = 200,
        before: PagePosition | None = None,
        max_bytes: int | None = None,
        is_bare: bool = False,
    ) -> Sequence[Task]: ...
    async def replay(self, task_ids: Sequence[TaskId]) -> Sequence[TaskId]: ...
    async def dead(self, reaction_id: str, limit: int) -> Sequence[TaskId]: ...
    async def forget(self, before_ms: int) -> int: ...
    async def outcomes(self) -> Sequence[Outcomes]: ...


class Reactions(Protocol):
    """All reactions, and how far each has been matched.

    Every change of a reaction is an entry and is active from its position on. Registering a reaction again moves no
    cursor. `listed` returns them in the order of ids, those after an id. `record` stores what a matcher made of a page,
    or nothing if another matcher was first.
    """

    async def register(self, reaction: Reaction) -> ReactionRecord: ...
    async def remove(self, reaction_id: str) -> bool: ...
    async def pause(self, reaction_id: str, reason: str) -> ReactionRecord: ...
    async def resume(self, reaction_id: str) -> ReactionRecord: ...
    async def find(self, reaction_id: str) -> ReactionRecord | None: ...
    async def listed(
        self, subject_pattern: str = "", limit: int | None = None, after: str = ""
    ) -> Sequence[ReactionRecord]: ...
    async def match_cursor(self, seen: int) -> MatchCursor: ...
    async def record(self, page: MatchedPage) -> Recorded | None: ...


class Retention(Protocol):
    """Deletes old entries without changing a number.

    The floor rises before entries are deleted, so a reader gets a gap and never misses entries silently.
    """

    async def trim(self, through: GlobalSeq) -> Bounds: ...
    async def trim_run(self, run_id: RunId, keep: int) -> Head: ...
    async def forget_keys(self, before_ms: int) -> int: ...


class Transaction(Protocol):
    """Statements and the entries they stage, committed together or not at all.

    Staged requests are numbered at the end of the block, so the journal's lock is taken last; if one is refused, the
    block is rolled back and its error is raised. Only code that changes heads or floors takes the lock earlier.
    """

    outcomes: Sequence[Sequence[Entry]]

    def append(self, request: AppendRequest) -> None: ...
    async def lock(self) -> None: ...
    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[tuple[Any, ...]]: ...


class Fault(NamedTuple):
    """Something wrong in the store, and where, as far as known."""

    reason: str
    global_seq: GlobalSeq | None = None
    run_id: RunId | None = None
    seq: Seq | None = None


class AuditPage(NamedTuple):
    """The progress of one stage of an audit, and the faults found in it."""

    stage: str
    done: int
    total: int
    faults: Sequence[Fault]


class Audit(Protocol):
    """Checks the whole store and reports every fault.

    It changes nothing, continues after a fault, and its memory does not grow with the journal. Entries appended or
    trimmed meanwhile are no faults.
    """

    def pages(self) -> AsyncGenerator[AuditPage, None]: ...

    async def unknown_steps(self) -> Sequence[int]:
        """The schema steps that only a newer Tape knows."""
        ...


class Store(Protocol):
    """A store: journal, runs, cells, tasks. `applied` lists the schema steps that opening it has run.

    `new_epoch` is for a restored journal: readers of the lost one must start over, and the new epoch is larger than all
    before. `epoch` is the newest one this store has seen: one begun by another process is known after the next read or
    append.
    """

    applied: tuple[str, ...]

    @property
    def epoch(self) -> Epoch: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def runs(self) -> RunDirectory: ...
    @property
    def cells(self) -> Cells: ...
    @property
    def reactions(self) -> Reactions: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def audit(self) -> Audit: ...
    def transaction(self) -> AbstractAsyncContextManager[Transaction]: ...
    async def new_epoch(self) -> Epoch: ...


class Wake(Protocol):
    """Notifies waiting streams that the journal has grown.

    A wake is a hint: losing one costs latency, never data.
    """

    async def notify(self, head: GlobalSeq) -> None: ...
    async def wait_beyond(self, cursor: GlobalSeq) -> None: ...


class EventSink(Protocol):
    """Where a producer sends its events; `emit` returns at once, from any thread, and keeps their order."""

    def emit(self, event: Event) -> object: ...


class EventBroker(Protocol):
    """A journal seen as runs: open, publish, close, reap; one `stream` covers replay and live.

    Events published before a close come before the end of the stream. `is_open` covers runs that this broker has
    opened, `is_open_remote` all runs. An unknown or reaped run streams nothing; a reopened one continues at its last
    seq plus one and streams only its newest incarnation.
    """

    def open_run(self, run_id: RunId, meta: RunMeta | None = None) -> None: ...
    def close_run(self, run_id: RunId) -> None: ...
    def reap(self, run_id: RunId) -> None: ...
    def is_open(self, run_id: RunId) -> bool: ...
    async def is_open_remote(self, run_id: RunId) -> bool: ...
    async def live_runs(self) -> Sequence[LiveRun]: ...
    async def publish(self, run_id: RunId, event: Event) -> Seq: ...
    def stream(self, run_id: RunId, from_seq: Seq = Seq(0)) -> AsyncIterator[EventEnvelope]: ...
