"""Pages of a run's entries, from the journal or from the file of a run that a bounded store has deleted."""

from contextlib import closing
from datetime import timedelta

import anyio

from tape.bus.journal import Journal
from tape.bus.stream import StreamReader
from tape.core.caller import Caller
from tape.core.errors import BrokerOverflowError, InvalidCursor, RunNotFound
from tape.core.event import Entry
from tape.core.event_page import EventPage, answer_size
from tape.core.ids import RunId, Seq
from tape.core.page import fit_answer
from tape.core.ports import RunDirectory
from tape.core.run import Head
from tape.operations.journal_runs import ListEvents
from tape.runs.cold_runs import ColdHistory, ColdRuns, EndedRun


class RunEvents:
    def __init__(self, journal: Journal, runs: RunDirectory, cold: ColdRuns | None = None) -> None:
        self._journal = journal
        self._runs = runs
        self._cold = cold

    async def list(self, request: ListEvents, caller: Caller) -> EventPage:
        """A run that does not exist yet may be waited for, too."""
        run_id = RunId(request.run_id)
        file = await self._find_file(run_id)
        try:
            return await self._page(request, file)
        except (BrokerOverflowError, RunNotFound):
            again = await self._find_file(run_id) if file is None else None
            if again is None:
                raise
        return await self._page(request, again)  # the store has deleted the run meanwhile

    async def _page(self, request: ListEvents, file: EndedRun | None) -> EventPage:
        run_id = RunId(request.run_id)
        try:
            with closing(self._open(request, file)) as reader:
                found = await _read(reader, request.wait)
                epoch = reader.selection.epoch
        except InvalidCursor:
            await self._head(run_id, file)  # an unknown run is not found, whatever the cursor
            raise
        head = await self._head(run_id, file)
        entries = tuple(fit_answer(found[: request.limit], answer_size))
        last = entries[-1].seq if entries else Seq(request.after)
        return EventPage(
            entries=entries,
            next=last,
            head=max(head.last_seq, last),
            closed=not head.is_open,
            epoch=epoch,
        )

    async def _find_file(self, run_id: RunId) -> EndedRun | None:
        """A run that must be read from its file."""
        return None if self._cold is None else await self._cold.find_ended(run_id, await self._runs.find(run_id))

    def _open(self, request: ListEvents, file: EndedRun | None) -> StreamReader:
        run_id = RunId(request.run_id)
        if self._cold is not None and file is not None:
            epoch = file.epoch_or(self._journal.epoch)
            return ColdHistory(self._cold, epoch, file.last_seq).reader(run_id, request.after, request.epoch)
        return self._journal.reader(run_id=run_id, from_seq=request.after + 1, epoch=request.epoch)

    async def _head(self, run_id: RunId, file: EndedRun | None) -> Head:
        head = file.record.head if file is not None else (await self._runs.heads([run_id])).get(run_id)
        if head is None:
            raise RunNotFound(run_id)
        return head


async def _read(reader: StreamReader, wait: timedelta) -> list[Entry]:
    """The next page of history; an empty one of an open run is read again as soon as there is more, within a time."""
    page = await reader.replay()
    with anyio.move_on_after(wait.total_seconds()):
        while wait and not page.entries and not page.is_over:
            if not reader.is_overtaken and not reader.has_more and not reader.is_over:
                await reader.wait()
            page = await reader.replay()
    return list(page.entries)
