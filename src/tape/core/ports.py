"""What the rooms ask of each other; each docstring is a law that every implementation keeps."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from tape.core.errors import TapeError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import Head, LiveRun, RunMeta
from tape.core.sequence import Cell, CellId, Request
from tape.core.subject import Pattern

Outcome: TypeAlias = Sequence[Entry] | TapeError


class Bounds(NamedTuple):
    """Where a journal begins and where it ends; it is empty when the floor is above the head."""

    floor: GlobalSeq
    head: GlobalSeq


class Page(NamedTuple):
    """Entries of a journal: all that match up to `scanned_to`, with the bounds of the same snapshot.

    `changes` moves whenever a run is opened, closed or trimmed otherwise than by an append; None: it may have.
    """

    entries: Sequence[Entry]
    scanned_to: GlobalSeq
    bounds: Bounds
    changes: int | None = None


class RunPage(NamedTuple):
    """Entries of a run, with the run's head (None: no such run) and the journal's bounds of the same snapshot."""

    entries: Sequence[Entry]
    run: Head | None
    bounds: Bounds


class Reader(Protocol):
    """Reads a journal, or a copy of it, in the order of positions.

    What lies at or below a position that was read never changes and never grows. An entry whose bytes are not what
    was written raises `Corrupt` in its place; the entries before it are given first.
    """

    async def bounds(self) -> Bounds: ...
    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page: ...
    async def read_run(self, run_id: RunId, after: Seq) -> RunPage: ...


class Journal(Reader, Protocol):
    """The ordered log.

    Requests of a call are judged in order, as `sequence.decide` judges them; an outcome is given for each. When
    `append` returns, what it accepted is as durable as the store can make it.
    `wait` returns when the journal may have grown beyond a position or a run may have ended; it may return early.
    """

    async def append(self, requests: Sequence[Request]) -> Sequence[Outcome]: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...


class RunDirectory(Protocol):
    """Which runs there are, and which of them are open.

    A run keeps its numbers for ever: opening it again goes on at its last seq plus one. Closing it again changes
    nothing. An open run cannot be opened or reaped.
    """

    async def open(self, run_id: RunId, meta: RunMeta) -> Head: ...
    async def close(self, run_id: RunId) -> Head: ...
    async def reap(self, run_id: RunId) -> None: ...
    async def live(self) -> Sequence[LiveRun]: ...
    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]: ...


class Cells(Protocol):
    """The rows of all ledgers; only a request changes them."""

    async def read(self, ids: Sequence[CellId]) -> Mapping[CellId, Cell]: ...


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


class Store(Protocol):
    """One place where a journal, its runs and its cells live; `applied` is what opening it did to its schema.

    A new epoch, larger than all before, is for a journal that was restored: readers of the lost one must start over.
    """

    epoch: Epoch
    applied: tuple[str, ...]

    @property
    def journal(self) -> Journal: ...
    @property
    def runs(self) -> RunDirectory: ...
    @property
    def cells(self) -> Cells: ...
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

    async def tell(self, head: GlobalSeq) -> None: ...
    async def wait_beyond(self, cursor: GlobalSeq) -> None: ...
