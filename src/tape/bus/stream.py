"""The only way to read: replay and then live, in one call, in order, once each.

A stream starts in the journal and goes on in the shared tail; a reader that the tail has overtaken goes back to the
journal. Only this module knows the difference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tape.bus.tail import Lane, Tail
from tape.core.errors import BrokerOverflowError, InvalidCursor
from tape.core.event import Entry
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Reader
from tape.core.run import Head
from tape.core.subject import Pattern

Admits: TypeAlias = Callable[[Entry], bool]


class Replay(NamedTuple):
    """A page of history, and the position up to which everything has been looked at (None: there is more)."""

    entries: Sequence[Entry]
    looked_to: GlobalSeq | None
    is_over: bool


class Selection(Protocol):
    """Which entries a stream is about, and how far it has come."""

    @property
    def lane(self) -> RunId | Pattern | None: ...
    async def replay(self, reader: Reader) -> Replay: ...
    def take(self, batch: Sequence[Entry]) -> Sequence[Entry]: ...
    def has_ended(self, lane: Lane) -> bool: ...


class RunSelection:
    """A run, from a seq on, to its end."""

    def __init__(self, run_id: RunId, from_seq: int, follow: bool, admits: Admits | None) -> None:
        self.lane = run_id
        self._after = Seq(max(from_seq, 1) - 1)
        self._follow = follow
        self._admits = admits
        self._until: Seq | None = None

    async def replay(self, reader: Reader) -> Replay:
        page = await reader.read_run(self.lane, self._after)
        run = page.run or Head()
        self._check(run)
        if not self._follow and self._until is None:
            self._until = run.last_seq
        found = self.take(_cut(page.entries, "seq", self._until))
        is_over = self._is_past(run.closed_seq) or self._is_past(self._until)
        return Replay(found, page.bounds.head if self._is_past(run.last_seq) else None, is_over)

    def take(self, batch: Sequence[Entry]) -> Sequence[Entry]:
        if batch:
            self._after = batch[-1].seq
        return _admitted(batch, self._admits)

    def has_ended(self, lane: Lane) -> bool:
        return self._is_past(lane.closed_seq)

    def _is_past(self, seq: Seq | None) -> bool:
        return seq is not None and self._after >= seq

    def _check(self, run: Head) -> None:
        if self._after + 1 < run.floor:
            raise BrokerOverflowError(self.lane, self._after + 1, run.floor)
        if self._after > run.last_seq:
            raise InvalidCursor(f"run {self.lane!r} is at seq {run.last_seq}; nobody has been told of {self._after}")


class JournalSelection:
    """The whole journal or the subjects of a pattern, after a position."""

    def __init__(self, pattern: Pattern | None, after: int, follow: bool, admits: Admits | None) -> None:
        self.lane = pattern
        self._after = GlobalSeq(after)
        self._follow = follow
        self._admits = admits
        self._until: GlobalSeq | None = None

    async def replay(self, reader: Reader) -> Replay:
        page = await reader.read(self._after, pattern=self.lane)
        self._check(page.bounds)
        if not self._follow and self._until is None:
            self._until = page.bounds.head
        found = self.take(_cut(page.entries, "global_seq", self._until))
        self._after = page.scanned_to
        is_over = self._until is not None and self._after >= self._until
        return Replay(found, self._after if self._after >= page.bounds.head else None, is_over)

    def take(self, batch: Sequence[Entry]) -> Sequence[Entry]:
        if batch:
            self._after = batch[-1].global_seq
        return _admitted(batch, self._admits)

    def has_ended(self, lane: Lane) -> bool:
        return False

    def _check(self, bounds: Bounds) -> None:
        if self._after + 1 < bounds.floor:
            raise BrokerOverflowError(None, self._after + 1, bounds.floor)
        if self._after > bounds.head:
            raise InvalidCursor(f"the journal is at {bounds.head}; nobody has been told of {self._after}")


class Stream:
    """The entries of a selection, one by one. Close it, or let it go: both free its place."""

    def __init__(self, batches: AsyncGenerator[Sequence[Entry], None]) -> None:
        self._batches = batches
        self._batch: Sequence[Entry] = ()
        self._place = 0

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Entry:
        while self._place == len(self._batch):
            self._batch = await self._batches.__anext__()
            self._place = 0
        self._place += 1
        return self._batch[self._place - 1]

    async def aclose(self) -> None:
        self._batch = ()
        self._place = 0
        await self._batches.aclose()


async def batches(selection: Selection, reader: Reader, tail: Tail) -> AsyncGenerator[Sequence[Entry], None]:
    """What a selection sees, in batches that are never empty."""
    lane = tail.join(selection.lane)
    waiter = None
    try:
        while True:
            page = await selection.replay(reader)
            if page.entries:
                yield page.entries
            if page.is_over:
                return
            place = lane.after(page.looked_to)
            while (batch := place.read()) is not None:
                if batch:
                    if found := selection.take(batch):
                        yield found
                elif selection.has_ended(lane):
                    return
                else:
                    waiter = lane.wait()
                    await waiter
    finally:
        lane.forget(waiter)
        tail.leave(selection.lane, lane)


def _admitted(entries: Sequence[Entry], admits: Admits | None) -> Sequence[Entry]:
    return entries if admits is None else [entry for entry in entries if admits(entry)]


def _cut(entries: Sequence[Entry], by: str, until: int | None) -> Sequence[Entry]:
    """What lies at or before an end."""
    if until is None or not entries or getattr(entries[-1], by) <= until:
        return entries
    return [entry for entry in entries if getattr(entry, by) <= until]
