"""The sources of SSE streams: a run, the journal across runs, or an ended run that only a cold file has."""

from typing import Protocol

from tape.bus.journal import Journal
from tape.bus.stream import StreamReader
from tape.bus.stream_options import entry_filter
from tape.core.ids import Epoch, RunId, Seq
from tape.core.ports import RunDirectory
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.runs.cold_runs import ColdHistory, ColdRuns
from tape.server.sse.run_end import RunEndFrames
from tape.wire.frames import RunEnd
from tape.wire.sse import IdField


class StreamSource(Protocol):
    """Opens readers; `restart` is the cursor after an epoch change, and the earliest id that follows it."""

    @property
    def by(self) -> IdField: ...
    @property
    def is_filtered(self) -> bool: ...
    @property
    def epoch(self) -> Epoch: ...
    def open(self, after: int, epoch: int | None = None) -> StreamReader: ...
    async def restart(self) -> tuple[int, int]: ...
    async def end(self, last_id: int) -> RunEnd | None: ...


class JournalSource:
    """The journal across runs by its positions, filtered by a pattern and a predicate."""

    by: IdField = "global_seq"

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
        """After an epoch change, the stream resumes at the new head: nobody wants years of history replayed."""
        head = await self._journal.head()
        return head, head + 1

    async def end(self, last_id: int) -> RunEnd | None:
        """A journal has no end."""
        return None


class RunSource(JournalSource):
    """A run by its seqs, open or closed."""

    by: IdField = "seq"

    def __init__(
        self,
        journal: Journal,
        runs: RunDirectory,
        run_id: RunId,
        subject: str | None = None,
        where: str | None = None,
        ends: RunEndFrames | None = None,
    ) -> None:
        super().__init__(journal, subject, where)
        self._runs = runs
        self._run_id = run_id
        self._ends = ends or RunEndFrames(runs)

    def open(self, after: int, epoch: int | None = None) -> StreamReader:
        return self._journal.reader(
            run_id=self._run_id, from_seq=after + 1, subject=self._subject, where=self._where, epoch=epoch
        )

    async def restart(self) -> tuple[int, int]:
        """After an epoch change, the run is replayed from its floor."""
        floor = (await self._runs.heads([self._run_id])).get(self._run_id, Head()).floor
        return floor - 1, floor

    async def end(self, last_id: int) -> RunEnd | None:
        return await self._ends.of(self._run_id, last_id)


class ColdSource:
    """An ended run in its file, up to `last_seq`."""

    by: IdField = "seq"

    def __init__(
        self,
        cold: ColdRuns,
        epoch: Epoch,
        run_id: RunId,
        last_seq: Seq,
        ends: RunEndFrames,
        subject: str | None = None,
        where: str | None = None,
    ) -> None:
        self.epoch = epoch
        self._ends = ends
        self._run_id = run_id
        self._history = ColdHistory(cold, epoch, last_seq)
        self._accepts = entry_filter(None if subject is None else Pattern.parse(subject), where)
        self.is_filtered = subject is not None or where is not None

    def open(self, after: int, epoch: int | None = None) -> StreamReader:
        return self._history.reader(self._run_id, after, epoch, self._accepts)

    async def restart(self) -> tuple[int, int]:
        return 0, 1

    async def end(self, last_id: int) -> RunEnd:
        return await self._ends.of(self._run_id, last_id)
