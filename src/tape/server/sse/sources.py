"""What an SSE stream can be about: a run, the journal across runs, or a run that only a cold file has."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from tape.bus.journal import Journal, entry_filter
from tape.bus.selection import EntryFilter, HistoryPage
from tape.bus.stream import StreamReader
from tape.core.errors import BrokerOverflowError, InvalidCursor
from tape.core.event import Entry
from tape.core.ids import Epoch, RunId, Seq
from tape.core.ports import RunDirectory
from tape.core.run import Head
from tape.server.node import ColdRuns
from tape.server.sse.run_end import RunEndFrames
from tape.wire.frames import RunEnd
from tape.wire.sse import By

PAGE: Final = 256


class SourceReader(Protocol):
    """Pages of history, then what the tail has."""

    @property
    def is_overtaken(self) -> bool: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def lag(self) -> tuple[int, int]: ...
    @property
    def cursor(self) -> int: ...
    @property
    def epoch(self) -> Epoch: ...
    async def replay(self) -> HistoryPage: ...
    @property
    def is_journal_closed(self) -> bool: ...
    def take(self, most: int) -> Sequence[Entry] | None: ...
    def listen(self, listener: Callable[[], None]) -> None: ...
    def close(self) -> None: ...


class Source(Protocol):
    """What a stream is about: where it can be read from, and where to start over in another journal."""

    @property
    def by(self) -> By: ...
    @property
    def is_filtered(self) -> bool: ...
    @property
    def epoch(self) -> Epoch: ...
    def open(self, after: int, epoch: int | None = None) -> SourceReader: ...
    async def restart(self) -> tuple[int, int]: ...
    async def end(self, last_id: int) -> RunEnd | None: ...


class RunSource:
    """A run by its seqs, live or not."""

    by: Final[By] = "seq"

    def __init__(
        self,
        journal: Journal,
        runs: RunDirectory,
        run_id: RunId,
        subject: str | None = None,
        where: str | None = None,
        ends: RunEndFrames | None = None,
    ) -> None:
        self._journal = journal
        self._runs = runs
        self._ends = ends or RunEndFrames(runs)
        self._run_id = run_id
        self._subject = subject
        self._where = where
        self.is_filtered = subject is not None or where is not None

    @property
    def epoch(self) -> Epoch:
        return self._journal.epoch

    def open(self, after: int, epoch: int | None = None) -> StreamReader:
        return self._journal.reader(
            run_id=self._run_id, from_seq=after + 1, subject=self._subject, where=self._where, epoch=epoch
        )

    async def head(self) -> Head:
        return (await self._runs.heads([self._run_id])).get(self._run_id, Head())

    async def restart(self) -> tuple[int, int]:
        """Another journal's run is replayed from its floor."""
        floor = (await self.head()).floor
        return floor - 1, floor

    async def end(self, last_id: int) -> RunEnd:
        return await self._ends.of(self._run_id, last_id)


class JournalSource:
    """The journal across runs by its positions, all of it or what a pattern and a predicate admit."""

    by: Final[By] = "global_seq"

    def __init__(self, journal: Journal, subject: str | None = None, where: str | None = None) -> None:
        self._journal = journal
        self._subject = subject
        self._where = where
        self.is_filtered = subject is not None or where is not None

    @property
    def epoch(self) -> Epoch:
        return self._journal.epoch

    def open(self, after: int, epoch: int | None = None) -> StreamReader:
        return self._journal.reader(subject=self._subject, where=self._where, from_global_seq=after, epoch=epoch)

    async def restart(self) -> tuple[int, int]:
        """Another journal is gone on with at its head: replaying years of it would help nobody."""
        head = await self._journal.head()
        return head, head + 1

    async def end(self, last_id: int) -> None:
        """A journal has no end."""


class ColdSource:
    """A run that has ended, from the file that kept it; there is nothing live about it."""

    by: Final[By] = "seq"

    def __init__(
        self,
        cold: ColdRuns,
        epoch: Epoch,
        run_id: RunId,
        ends: RunEndFrames,
        subject: str | None = None,
        where: str | None = None,
    ) -> None:
        self._cold = cold
        self.epoch = epoch
        self._ends = ends
        self._run_id = run_id
        self._accepts = entry_filter(subject, where) or _everything
        self.is_filtered = subject is not None or where is not None

    def open(self, after: int, epoch: int | None = None) -> "ColdReader":
        read = partial(self._cold.stream, self._run_id)
        return ColdReader(read, after, self._accepts, self.epoch, is_foreign=epoch not in (None, self.epoch))

    async def restart(self) -> tuple[int, int]:
        return 0, 1

    async def end(self, last_id: int) -> RunEnd:
        return await self._ends.of(self._run_id, last_id)


class ColdReader:
    """Pages of a file, and then the end."""

    is_overtaken = has_more = is_journal_closed = False
    is_over = True
    lag = (0, 0)

    def __init__(
        self,
        read: Callable[[Seq], AsyncIterator[Entry]],
        after: int,
        accepts: EntryFilter,
        epoch: Epoch,
        *,
        is_foreign: bool = False,
    ) -> None:
        self.epoch = epoch
        self._is_foreign = is_foreign
        self._read = read
        self._accepts = accepts
        self._is_known = after == 0
        self._entries = read(Seq(after + 1))
        self.cursor = after

    async def replay(self) -> HistoryPage:
        """The next page; a cursor of another epoch, or that the file has never come to, is of another journal."""
        if self._is_foreign:
            raise InvalidCursor(f"the run is of epoch {self.epoch}; the cursor is not")
        page = [entry async for entry in first(PAGE, self._entries)]
        if page:
            self._is_known, self.cursor = True, page[-1].seq
        elif not self._is_known:
            await self._check()
        return HistoryPage([entry for entry in page if self._accepts(entry)], None, len(page) < PAGE)

    async def _check(self) -> None:
        with suppress(BrokerOverflowError):  # it is known, and gone
            async for _ in self._read(Seq(self.cursor)):
                return
            raise InvalidCursor(f"the run has ended before {self.cursor}; nobody has been told of it")

    def take(self, most: int) -> Sequence[Entry] | None:
        return None

    def listen(self, listener: Callable[[], None]) -> None:
        """Nothing will come."""

    def close(self) -> None:
        """The pages go with the last reference to them."""


async def first(most: int, entries: AsyncIterator[Entry]) -> AsyncIterator[Entry]:
    """As many as there are, up to so many; the next call goes on."""
    for _ in range(most):
        try:
            yield await anext(entries)
        except StopAsyncIteration:
            return


def _everything(_: Entry) -> bool:
    return True
