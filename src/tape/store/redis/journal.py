"""Reads the journal in pages, one script for each."""

from collections.abc import Sequence
from typing import Any, Final

import anyio

from tape.core.errors import Corrupt
from tape.core.fork import Segment
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome, Bounds, Page, RunPage, Wake
from tape.core.sequence import AppendRequest
from tape.core.subject import Pattern
from tape.core.term import Term
from tape.store.redis.append import Appender
from tape.store.redis.call import EXACT
from tape.store.redis.listen import JournalWake
from tape.store.redis.packing import SEPARATOR, intact, rows_of, unpack
from tape.store.redis.runs import head_of
from tape.store.redis.scripts import BOUNDS, READ, READ_RUN, Script
from tape.store.redis.server import Argument, Server

PAGE: Final = 512
PAGE_BYTES: Final = 4 << 20
WINDOW: Final = 1_000  # positions examined for one page of a pattern; Redis serves nobody else meanwhile
POLL_S: Final = 5.0
POLL_ALONE_S: Final = 0.5


class Journal:
    """The journal of one data set."""

    def __init__(self, server: Server, appender: Appender, listener: JournalWake, wake: Wake) -> None:
        self._server = server
        self._appender = appender
        self._listener = listener
        self._wake = wake

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        outcomes = await self._appender.append(requests)
        await self._wake.notify(self._server.data_set.head)
        return outcomes

    async def wait(self, beyond: GlobalSeq) -> None:
        with anyio.move_on_after(POLL_S if self._listener.is_listening else POLL_ALONE_S):
            await self._wake.wait_beyond(beyond)

    async def bounds(self) -> Bounds:
        return _bounds(await self._look(BOUNDS))

    async def terms(self) -> Sequence[Term]:
        return [Term(self._server.data_set.epoch, GlobalSeq(1))]

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        window = (min(after, EXACT), WINDOW, _beginning(pattern))
        *place, looked_to, rows = await self._look(READ, PAGE, PAGE_BYTES, *window)
        bounds = _bounds(place)
        entries = intact(unpack(RunId(run_id.decode()), *row) for run_id, *row in rows_of(rows, 4))
        scanned_to = max(after, int(looked_to)) if len(entries) == len(rows) // 4 else entries[-1].global_seq
        if scanned_to <= max(after, bounds.floor - 1) and scanned_to < bounds.head:
            raise Corrupt("it is missing", GlobalSeq(max(after + 1, bounds.floor)))
        if pattern is not None:
            entries = [entry for entry in entries if pattern.matches(entry.subject)]
        return Page(entries, GlobalSeq(scanned_to), bounds, int(place[-1]), Epoch(int(place[0])))

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        pieces = segments or (Segment(run_id, Seq(min(after, EXACT) + 1), None),)
        parts = [part for owner, first, last in pieces for part in (owner, first, last or "+")]
        *place, head, rows, owned = await self._look(READ_RUN, PAGE, PAGE_BYTES, run_id, *parts)
        owners = [piece.run_id for piece, count in zip(pieces, owned[1::2], strict=True) for _ in range(count)]
        entries = intact(unpack(owner, *row) for owner, row in zip(owners, rows_of(rows, 3), strict=True))
        floors = {piece.run_id: Seq(int(floor)) for piece, floor in zip(pieces, owned[::2], strict=True)}
        return RunPage(entries, head_of(head), _bounds(place), floors, Epoch(int(place[0])))

    async def _look(self, script: Script, *arguments: Argument) -> Any:
        """The result of a script, its epoch and head first; retried if they are below what was observed before."""
        seen = self._server.data_set
        while True:
            known = seen.place
            found = await self._server.ask(script, *arguments)
            epoch, _, head, _ = map(int, found[:4])
            if epoch and (epoch, head) >= known:
                seen.observe(Epoch(epoch), GlobalSeq(head))
                return found
            await self._server.enter()


def _bounds(place: Sequence[bytes]) -> Bounds:
    _, floor, head, _ = map(int, place)
    return Bounds(GlobalSeq(floor), GlobalSeq(head))


def _beginning(pattern: Pattern | None) -> str:
    """The prefix of every subject that the pattern matches."""
    if pattern is None:
        return ""
    if pattern.literal is not None:
        return pattern.literal + SEPARATOR
    span = pattern.prefix_range()
    return "" if span is None else span[0]
