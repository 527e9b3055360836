"""Warm and cold as one reader: the journal, and the lake where the journal no longer reaches back."""

from collections.abc import Sequence
from dataclasses import replace

from tape.core.event import Entry
from tape.core.fork import Segment, surviving_from
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH, Bounds, Page, Reader, RunPage, TermReader
from tape.core.subject import Pattern
from tape.core.term import Term


class History:
    """Everything there is, from the lake's first entry to the journal's last, without a seam.

    A gap is left where neither has what is asked for; a lake that is not this journal's has nothing. Within an epoch a
    floor never falls, so below the last one that was met the journal is asked only for what is new in it.
    """

    def __init__(self, warm: TermReader, cold: Reader) -> None:
        self._warm = warm
        self._cold = cold
        self._known = Bounds(GlobalSeq(1), GlobalSeq(0))
        self._epoch = NO_EPOCH
        self._is_kin: bool | None = None

    async def bounds(self) -> Bounds:
        warm = await self._warm.bounds()
        cold = await self._cold.bounds()
        reaches = cold.head + 1 >= warm.floor and await self._check_kin()
        return Bounds(min(cold.floor, warm.floor) if reaches else warm.floor, warm.head)

    async def terms(self) -> Sequence[Term]:
        return await self._warm.terms()

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        if after + 1 >= self._known.floor:
            page = await self._warm.read(after, pattern=pattern)
            self._meet(page.epoch, page.bounds)
            if after + 1 >= page.bounds.floor:
                return page
        return await self._read_cold(after, pattern)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        page = await self._warm.read_run(run_id, after, segments)
        self._meet(page.epoch, page.bounds)
        if page.run is None or not _is_late(page, run_id, after, segments) or not await self._check_kin():
            return page
        older = await self._cold.read_run(run_id, after, segments)
        if not older.entries:
            return page
        return RunPage(older.entries, replace(page.run, floor=Seq(1)), page.bounds, epoch=page.epoch)

    async def _read_cold(self, after: GlobalSeq, pattern: Pattern | None) -> Page:
        """A page of the lake; one with nothing in it below the floor, which is a gap, if the lake has none."""
        older = await self._cold.read(after, pattern=pattern) if await self._check_kin() else None
        newest = await self._warm.read(self._known.head)  # asked last: what the lake holds is not beyond the head
        if self._meet(newest.epoch, newest.bounds):
            return await self.read(after, pattern=pattern)
        if older is None or older.scanned_to <= after:
            return Page((), after, newest.bounds, epoch=newest.epoch)
        return older._replace(bounds=Bounds(older.bounds.floor, newest.bounds.head), epoch=newest.epoch)

    def _meet(self, epoch: Epoch, bounds: Bounds) -> bool:
        """Takes note of where the journal stands; whether it is another one, whose lake has yet to be looked at."""
        is_other = self._epoch not in (NO_EPOCH, epoch)
        if is_other:
            self._is_kin = None
        self._epoch, self._known = epoch, bounds
        return is_other

    async def _check_kin(self) -> bool:
        """Whether the lake is this journal's: where both have an entry, it is the same one."""
        if self._is_kin is None:
            bounds = await self._warm.bounds()
            found = (await self._warm.read(GlobalSeq(bounds.floor - 1))).entries
            cold = await self._cold.bounds()
            self._is_kin = cold.head <= (await self._warm.bounds()).head and (
                not found or cold.head < found[0].global_seq or await self._has(found[0])
            )
        return self._is_kin

    async def _has(self, entry: Entry) -> bool:
        page = await self._cold.read(GlobalSeq(entry.global_seq - 1))
        return bool(page.entries) and page.entries[0] == entry


def _is_late(page: RunPage, run_id: RunId, after: Seq, segments: Sequence[Segment]) -> bool:
    """Whether what is left of a run begins after the place that was asked for."""
    run_floor = page.run.floor if page.run else Seq(1)
    pieces = segments or (Segment(run_id, Seq(after + 1), None),)
    floors = {owner: max(floor, run_floor) for owner, floor in page.floors.items()} or {run_id: run_floor}
    return surviving_from(pieces, floors) > after + 1
