"""Reads the journal and, where it no longer reaches back, the lake, as one history."""

from collections.abc import Sequence
from dataclasses import replace

from tape.core.event import Entry
from tape.core.fork import Segment, surviving_from
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH, Bounds, Page, Reader, RunPage, TermReader
from tape.core.subject import Pattern
from tape.core.term import Term


class History:
    """All entries from the lake's first to the journal's last.

    Where neither has an entry there is a gap; a lake of another journal is ignored. Within an epoch a floor never
    falls, so for positions below the last known floor the journal is only asked for its new bounds.
    """

    def __init__(self, warm: TermReader, cold: Reader) -> None:
        self._warm = warm
        self._cold = cold
        self._known = Bounds(GlobalSeq(1), GlobalSeq(0))
        self._epoch = NO_EPOCH
        self._is_same: bool | None = None

    async def bounds(self) -> Bounds:
        warm = await self._warm.bounds()
        cold = await self._cold.bounds()
        reaches = cold.head + 1 >= warm.floor and await self._is_same_journal()
        return Bounds(min(cold.floor, warm.floor) if reaches else warm.floor, warm.head)

    async def terms(self) -> Sequence[Term]:
        return await self._warm.terms()

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        if after + 1 >= self._known.floor:
            page = await self._warm.read(after, pattern=pattern)
            self._observe(page.epoch, page.bounds)
            if after + 1 >= page.bounds.floor:
                return page
        return await self._read_cold(after, pattern)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        page = await self._warm.read_run(run_id, after, segments)
        self._observe(page.epoch, page.bounds)
        if page.run is None or not _begins_late(page, run_id, after, segments) or not await self._is_same_journal():
            return page
        older = await self._cold.read_run(run_id, after, segments)
        if not older.entries:
            return page
        return RunPage(older.entries, replace(page.run, floor=Seq(1)), page.bounds, epoch=page.epoch)

    async def _read_cold(self, after: GlobalSeq, pattern: Pattern | None) -> Page:
        """A page of the lake; if the lake has none, an empty page below the floor, which is a gap."""
        older = await self._cold.read(after, pattern=pattern) if await self._is_same_journal() else None
        newest = await self._warm.read(self._known.head)  # read last, so that its head is not below the lake's
        if self._observe(newest.epoch, newest.bounds):
            return await self.read(after, pattern=pattern)
        if older is None or older.scanned_to <= after:
            return Page((), after, newest.bounds, epoch=newest.epoch)
        return older._replace(bounds=Bounds(older.bounds.floor, newest.bounds.head), epoch=newest.epoch)

    def _observe(self, epoch: Epoch, bounds: Bounds) -> bool:
        """Records the journal's bounds; whether a new epoch has begun, for which the lake must be checked again."""
        is_new = self._epoch not in (NO_EPOCH, epoch)
        if is_new:
            self._is_same = None
        self._epoch, self._known = epoch, bounds
        return is_new

    async def _is_same_journal(self) -> bool:
        """Whether the lake is of this journal: its last entry is the journal's, unless that one is trimmed.

        An earlier one does not tell: after a promotion or a restore a lake may have entries that the journal has lost.
        """
        if self._is_same is None:
            last = (await self._cold.bounds()).head
            page = await self._warm.read(GlobalSeq(max(last - 1, 0)))
            self._is_same = last <= page.bounds.head and (
                not page.entries or last < page.entries[0].global_seq or await self._has(page.entries[0])
            )
        return self._is_same

    async def _has(self, entry: Entry) -> bool:
        page = await self._cold.read(GlobalSeq(entry.global_seq - 1))
        return bool(page.entries) and page.entries[0] == entry


def _begins_late(page: RunPage, run_id: RunId, after: Seq, segments: Sequence[Segment]) -> bool:
    """Whether the journal's part of a run begins after the requested seq."""
    run_floor = page.run.floor if page.run else Seq(1)
    pieces = segments or (Segment(run_id, Seq(after + 1), None),)
    floors = {owner: max(floor, run_floor) for owner, floor in page.floors.items()} or {run_id: run_floor}
    return surviving_from(pieces, floors) > after + 1
