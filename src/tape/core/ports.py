"""What the rooms ask of each other; each docstring is a law that every implementation keeps."""

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
from tape.core.page import PagePosition
from tape.core.reaction import Reaction
from tape.core.run import Head, LiveRun, RunMeta, RunRecord
from tape.core.sequence import Cell, CellId, Request
from tape.core.subject import Pattern
from tape.core.task import Claimed, ClaimRequest, Match, Outcomes, Settlement, Task, TaskClaim, TaskId
from tape.core.term import Term

AppendOutcome: TypeAlias = Sequence[Entry] | TapeError

NO_EPOCH: Final = Epoch(0)  # a copy of a journal does not know whose epoch it is


class Bounds(NamedTuple):
    """Where a journal begins and where it ends; it is empty when the floor is above the head."""

    floor: GlobalSeq
    head: GlobalSeq


class Page(NamedTuple):
    """Entries of a journal: all that match up to `scanned_to`, with the bounds and the epoch of the same snapshot.

    `changes` moves whenever a run is opened, closed or trimmed otherwise than by an append; None: it may have.
    """

    entries: Sequence[Entry]
    scanned_to: GlobalSeq
    bounds: Bounds
    changes: int | None = None
    epoch: Epoch = NO_EPOCH


class RunPage(NamedTuple):
    """Entries of a run, with its head (None: no such run) and the journal's bounds and epoch of the same snapshot.

    When it was read by segments, `floors` says where each run that owns one of them begins.
    """

    entries: Sequence[Entry]
    run: Head | None
    bounds: Bounds
    floors: Mapping[RunId, Seq] = MappingProxyType({})
    epoch: Epoch = NO_EPOCH


class Reader(Protocol):
    """Reads a journal, or a copy of it, in the order of positions.

    Within an epoch, what lies at or below a position that was read never changes and never grows. A cursor is read as
    one of the epoch that the page names: who has it from another one asks the `terms` whether to go on. An entry whose
    bytes are not what was written raises `Corrupt` in its place, and so does one that is missing above the floor,
    whether or not a pattern would have matched it; the entries before it are given first.
    A run that inherits is read by its segments, which begin after the seq; what is gone of one of them is left out.
    """

    async def bounds(self) -> Bounds: ...
    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page: ...
    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage: ...


class TermReader(Reader, Protocol):
    """Reads a journal itself, which knows its terms: those it goes on from, and the present one."""

    async def terms(self) -> Sequence[Term]: ...


class Journal(TermReader, Protocol):
    """The ordered log.

    Requests of a call are judged in order, as `sequence.decide` judges them; an outcome is given for each. When
    `append` returns, what it accepted is as durable as the store can make it.
    `wait` returns when the journal may have grown beyond a position or a run may have ended; it may return early.
    """

    async def append(self, requests: Sequence[Request]) -> Sequence[AppendOutcome]: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...


class RunDirectory(Protocol):
    """Which runs there are, and which of them are open.

    A run keeps its numbers for ever: opening it again goes on at its last seq plus one. Closing it again changes
    nothing. An open run cannot be opened or reaped.
    A run opened by a named producer is leased to it. `renew` says which of its runs the producer still holds, and
    `close_silent` closes those whose producer has not renewed for so long; both go by the store's own clock. Who
    renews and `adopts` also takes the lease of open runs that nobody holds.
    """

    async def open(self, run_id: RunId, meta: RunMeta, producer: str | None = None) -> Head: ...
    async def close(self, run_id: RunId) -> Head: ...
    async def reap(self, run_id: RunId) -> None: ...
    async def renew(self, producer: str, run_ids: Sequence[RunId], *, adopts: bool = False) -> Sequence[RunId]: ...
    async def close_silent(self, silence: timedelta) -> Mapping[RunId, Head]: ...
    async def find(self, run_id: RunId) -> RunRecord | None: ...
    async def listed(self, *, is_open: bool, limit: int | None = None) -> Sequence[RunRecord]: ...
    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]: ...


class CellSnapshot(NamedTuple):
    """Cells as they were at one moment, which is a time of the store's own clock; what is absent does not exist."""

    now_ms: int
    cells: Mapping[CellId, Cell]


class DueCursor(NamedTuple):
    """Where a list of due cells goes on: after this time and key."""

    due_at_ms: int = -1
    key: str = ""


DUE_START: Final = DueCursor()


class WorkFilter(NamedTuple):
    """What a worker can serve: work of these apps that is of these kinds."""

    apps: tuple[str, ...]
    kinds: tuple[str, ...]


class Cells(Protocol):
    """The rows of all ledgers; only a request changes them.

    `due` lists those of a ledger and status whose time has come, earliest first, and of them only those that can be
    `served`, if that is given; `under` those whose key begins with a parent and a slash, in the order of keys. Both
    give a page at a time, and what is left out takes no place in it.
    """

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]: ...
    async def snapshot(self, ids: Sequence[CellId]) -> CellSnapshot: ...
    async def due(
        self, ledger: str, status: str, through_ms: int, limit: int, after: DueCursor = DUE_START,
        served: WorkFilter | None = None,
    ) -> Mapping[CellId, Cell]: ...  # fmt: skip
    async def under(self, ledger: str, parent: str, limit: int, after: str = "") -> Mapping[CellId, Cell]: ...


class Queue(Protocol):
    """Work that is taken with a lease, by the store's own clock.

    An attempt is counted when it is claimed, and only the newest one may extend its lease or settle: to any other it is
    a `StaleClaim`. What is not settled before its lease ends is claimed again, or dead if it was the last attempt.
    However many claim, no more is leased and no more starts than the limits of a reaction allow.
    """

    async def claim(self, request: ClaimRequest) -> Claimed: ...
    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]: ...
    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]: ...


class Tasks(Queue, Protocol):
    """All tasks there are. A dead one that is replayed begins to count its attempts anew and keeps its fencing number.

    A task that dies or is replayed leaves an entry, but for those that the removal of their reaction ends: its entry
    stands for them all. `made_of` is an entry's task, or else the first of a newer entry of the same subject. `make`
    makes the tasks that are missing, and says how many those were. `listed` gives the newest first, those before a
    place, and ends a page where it reaches its bytes; a bare one has no payloads.
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
    """Which reactions there are, and how far they have been matched.

    Whatever is said of one is an entry, and is active from its position on. Registering one again moves no cursor.
    `record` writes what a matcher has made of a page, or nothing when another was first.
    """

    async def register(self, reaction: Reaction) -> ReactionRecord: ...
    async def remove(self, reaction_id: str) -> bool: ...
    async def pause(self, reaction_id: str, reason: str) -> ReactionRecord: ...
    async def resume(self, reaction_id: str) -> ReactionRecord: ...
    async def find(self, reaction_id: str) -> ReactionRecord | None: ...
    async def listed(self, subject_pattern: str = "") -> Sequence[ReactionRecord]: ...
    async def match_cursor(self, seen: int) -> MatchCursor: ...
    async def record(self, page: MatchedPage) -> Recorded | None: ...


class Retention(Protocol):
    """Forgets the past without changing a number.

    The floor rises before an entry goes, so a reader is told of a gap and never falls into a hole.
    """

    async def trim(self, through: GlobalSeq) -> Bounds: ...
    async def trim_run(self, run_id: RunId, keep: int) -> Head: ...
    async def forget_keys(self, before_ms: int) -> int: ...


class Transaction(Protocol):
    """Set-based work and the entries it stages, all there or absent.

    Staged requests are numbered when the block ends, so the journal's lock is taken last; if one of them is refused,
    nothing of the block remains and its error is raised. Only who changes heads or floors takes the lock sooner.
    """

    outcomes: Sequence[Sequence[Entry]]

    def append(self, request: Request) -> None: ...
    async def lock(self) -> None: ...
    async def fetch(self, statement: str, parameters: Mapping[str, object]) -> Sequence[tuple[Any, ...]]: ...


class Fault(NamedTuple):
    """Something that is not as it should be, and where, as far as that is known."""

    reason: str
    global_seq: GlobalSeq | None = None
    run_id: RunId | None = None
    seq: Seq | None = None


class AuditPage(NamedTuple):
    """How far an audit has come in one of its stages, and the faults it found on the way."""

    stage: str
    done: int
    total: int
    faults: Sequence[Fault]


class Audit(Protocol):
    """Looks at everything there is and names whatever is not as it should be.

    It changes nothing, goes on behind a fault, and takes no more memory for a longer journal. What is appended or
    trimmed meanwhile is no fault.
    """

    def pages(self) -> AsyncGenerator[AuditPage, None]: ...

    async def unknown_steps(self) -> Sequence[int]:
        """The steps of the schema that a newer Tape has made."""
        ...


class Store(Protocol):
    """One place where a journal, its runs and its cells live; `applied` is what opening it did to its schema.

    A new epoch, larger than all before, is for a journal that was restored: readers of the lost one must start over.
    `epoch` is the newest it has met: one that another process began is known after the next read or append, and the
    store goes on in it.
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
    """Tells waiting streams that the journal has grown.

    A wake is a hint: losing one costs latency, never data.
    """

    async def notify(self, head: GlobalSeq) -> None: ...
    async def wait_beyond(self, cursor: GlobalSeq) -> None: ...


class EventSink(Protocol):
    """Where a producer says its events; `emit` returns at once, in any thread, and keeps their order."""

    def emit(self, event: Event) -> object: ...


class EventBroker(Protocol):
    """The run-sized door to a journal: open, publish, close, reap; one `stream` covers replay and live.

    What was published before a close is in the stream before its end. `is_open` is what this broker has opened itself,
    `is_open_remote` what anybody has. A run that is unknown or reaped streams nothing; one opened again goes on at its
    last seq plus one and streams its new life only.
    """

    def open_run(self, run_id: RunId, meta: RunMeta | None = None) -> None: ...
    def close_run(self, run_id: RunId) -> None: ...
    def reap(self, run_id: RunId) -> None: ...
    def is_open(self, run_id: RunId) -> bool: ...
    async def is_open_remote(self, run_id: RunId) -> bool: ...
    async def live_runs(self) -> Sequence[LiveRun]: ...
    async def publish(self, run_id: RunId, event: Event) -> Seq: ...
    def stream(self, run_id: RunId, from_seq: Seq = Seq(0)) -> AsyncIterator[EventEnvelope]: ...
