"""What an SSE stream can be about: a run, the journal across runs, or a run that only a cold file has."""

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from tape.bus.journal import Journal
from tape.bus.stream import Reading as JournalReading, Replay
from tape.core.event import Entry
from tape.core.ids import RunId, Seq
from tape.core.ports import RunDirectory
from tape.core.run import Head
from tape.server.node import ColdRuns
from tape.wire.sse import By

PAGE: Final = 256


class Reading(Protocol):
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
    async def replay(self) -> Replay: ...
    @property
    def is_cut(self) -> bool: ...
    def take(self, most: int) -> list[Entry] | None: ...
    def listen(self, listener: Callable[[], None]) -> None: ...
    def close(self) -> None: ...


class Source(Protocol):
    """What a stream is about: where it can be read from, and where to start over in another journal."""

    @property
    def by(self) -> By: ...
    @property
    def is_filtered(self) -> bool: ...
    def open(self, after: int) -> Reading: ...
    async def restart(self) -> tuple[int, int]: ...


class RunSource:
    """A run by its seqs, live or not."""

    by: Final[By] = "seq"

    def __init__(
        self, journal: Journal, runs: RunDirectory, run_id: RunId, subject: str | None = None, where: str | None = None
    ) -> None:
        self._journal = journal
        self._runs = runs
        self._run_id = run_id
        self._subject = subject
        self._where = where
        self.is_filtered = subject is not None or where is not None

    def open(self, after: int) -> JournalReading:
        return self._journal.reading(run_id=self._run_id, from_seq=after + 1, subject=self._subject, where=self._where)

    async def head(self) -> Head:
        return (await self._runs.heads([self._run_id])).get(self._run_id, Head())

    async def restart(self) -> tuple[int, int]:
        """Another journal's run is replayed from its floor."""
        floor = (await self.head()).floor
        return floor - 1, floor


class JournalSource:
    """The journal across runs by its positions, all of it or what a pattern and a predicate admit."""

    by: Final[By] = "global_seq"

    def __init__(self, journal: Journal, subject: str | None = None, where: str | None = None) -> None:
        self._journal = journal
        self._subject = subject
        self._where = where
        self.is_filtered = subject is not None or where is not None

    def open(self, after: int) -> JournalReading:
        return self._journal.reading(subject=self._subject, where=self._where, from_global_seq=after)

    async def restart(self) -> tuple[int, int]:
        """Another journal is gone on with at its head: replaying years of it would help nobody."""
        head = await self._journal.head()
        return head, head + 1


class ColdSource:
    """A run that has ended, from the file that kept it; there is nothing live about it."""

    by: Final[By] = "seq"
    is_filtered = False

    def __init__(self, cold: ColdRuns, run_id: RunId) -> None:
        self._cold = cold
        self._run_id = run_id

    def open(self, after: int) -> "ColdReading":
        return ColdReading(self._cold.stream(self._run_id, Seq(after + 1)))

    async def restart(self) -> tuple[int, int]:
        return 0, 1


class ColdReading:
    """Pages of a file, and then the end."""

    is_overtaken = has_more = is_cut = False
    is_over = True
    lag = (0, 0)
    cursor = 0

    def __init__(self, entries: AsyncIterator[Entry]) -> None:
        self._entries = entries

    async def replay(self) -> Replay:
        page: list[Entry] = []
        async for entry in self._entries:
            page.append(entry)
            if len(page) == PAGE:
                return Replay(page, None, False)
        return Replay(page, None, True)

    def take(self, most: int) -> list[Entry] | None:
        return None

    def listen(self, listener: Callable[[], None]) -> None:
        """Nothing will come."""

    def close(self) -> None:
        """The pages go with the last reference to them."""
