"""Ended runs that only files have, because a bounded store has deleted them."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol

from tape.bus.selection import EntryFilter, RunSelection
from tape.bus.stream import StreamReader
from tape.bus.tail import Tail
from tape.core.errors import Unavailable
from tape.core.event import Entry
from tape.core.fork import Segment
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, RunPage
from tape.core.run import Head, RunMeta, RunRecord
from tape.core.server_unavailable import ServerUnavailable
from tape.core.term import Term


class ColdFile(Protocol):
    """A run as its file describes it; `epoch` is that of its entries, None if it has none."""

    @property
    def run_id(self) -> RunId: ...
    @property
    def meta(self) -> RunMeta: ...
    @property
    def last_seq(self) -> Seq: ...
    @property
    def epoch(self) -> Epoch | None: ...


class ColdFiles(Protocol):
    """Files with the runs of a bounded store: the same entries, numbers and bytes.

    `keep` copies a run into its file and returns when the run has ended and the file is complete. Nobody reads a file
    while `is_being_written`, and `find` raises Unavailable then.
    """

    def has(self, run_id: RunId) -> bool: ...
    def is_being_written(self, run_id: RunId) -> bool: ...
    async def find(self, run_id: RunId) -> ColdFile | None: ...
    async def page(self, run_id: RunId, from_seq: Seq) -> Sequence[Entry]: ...
    async def listed(self) -> Sequence[ColdFile]: ...
    async def keep(self, run_id: RunId, read: Callable[[Seq], AsyncIterator[Entry]], meta: RunMeta) -> None: ...


class EndedRun(NamedTuple):
    """The record of a run in a file, and the epoch of its entries.

    The server's journal may be another one, in which a seq of the run is another entry or none.
    """

    record: RunRecord
    epoch: Epoch | None

    @property
    def last_seq(self) -> Seq:
        return self.record.head.last_seq

    def epoch_or(self, journal: Epoch) -> Epoch:
        """The epoch of cursors in the file; that of the journal if the file has no entries."""
        return journal if self.epoch is None else self.epoch


class ColdRuns:
    """The runs in files as run records: ended and reaped.

    `incarnations` are those that a store still holds and whose files are complete, by run and first seq.
    """

    def __init__(self, files: ColdFiles) -> None:
        self._files = files
        self.incarnations: set[tuple[RunId, Seq]] = set()
        self.page = files.page
        self.keep = files.keep

    async def find(self, run_id: RunId) -> EndedRun | None:
        """The record of a run in its file, which must not be opened while it is being written."""
        self._check_written(run_id)
        return await self._find(run_id)

    async def find_ended(self, run_id: RunId, stored: RunRecord | None) -> EndedRun | None:
        """The record of a run that is to be read from its file; None if the store has it, or nobody.

        While the store holds a run, its file may be incomplete, of an earlier incarnation, or of another journal.
        """
        if stored is not None and stored.head.is_open:
            return None
        return await self._find(run_id) if self._is_complete(run_id, stored) else None

    async def _find(self, run_id: RunId) -> EndedRun | None:
        """The run in its file; None if the process that began the file was killed before it wrote the run."""
        try:
            file = await self._files.find(run_id)
        except Unavailable as error:
            raise _being_written(run_id) from error
        return None if file is None else EndedRun(_record(file), file.epoch)

    async def listed(self) -> list[RunRecord]:
        return [_record(file) for file in await self._files.listed()]

    def _is_complete(self, run_id: RunId, stored: RunRecord | None) -> bool:
        if stored is not None and not stored.is_reaped:
            return (run_id, stored.head.opened_seq) in self.incarnations
        self._check_written(run_id)
        return self._files.has(run_id)

    def _check_written(self, run_id: RunId) -> None:
        if self._files.is_being_written(run_id):
            raise _being_written(run_id)


class ColdHistory:
    """A run's file as the history of a stream; a file has no terms, so a cursor of another epoch is never resumed."""

    def __init__(self, cold: ColdRuns, epoch: Epoch, last_seq: Seq) -> None:
        self._cold = cold
        self._epoch = epoch
        self._head = Head(last_seq=last_seq, closed_seq=last_seq)

    def reader(
        self, run_id: RunId, after: int, epoch: int | None = None, accepts: EntryFilter | None = None
    ) -> StreamReader:
        """Reads the run after a seq. Nothing follows its file, so the reader's tail stays empty."""
        known = self._epoch if epoch is None else Epoch(epoch)
        selection = RunSelection(self, run_id, after + 1, accepts=accepts, epoch=known)
        return StreamReader(selection, Tail(GlobalSeq(0), epoch=self._epoch))

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        entries = await self._cold.page(run_id, Seq(after + 1))
        newest = entries[-1].epoch if entries else self._epoch  # the file of a newer journal may have replaced it
        return RunPage(entries, self._head, Bounds(GlobalSeq(1), GlobalSeq(0)), epoch=max(self._epoch, newest))

    async def terms(self) -> Sequence[Term]:
        return ()


def _being_written(run_id: RunId) -> ServerUnavailable:
    return ServerUnavailable(f"run {run_id!r} is still being written to its file; try again in a moment")


def _record(file: ColdFile) -> RunRecord:
    head = Head(last_seq=file.last_seq, closed_seq=file.last_seq)
    return RunRecord(run_id=file.run_id, meta=file.meta, head=head, opened_at_ms=0, is_reaped=True)
