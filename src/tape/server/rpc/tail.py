"""Pushing entries to one reader: pages of history first, then what the tail has, at the pace of the connection."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import anyio

from tape.bus.stream import Reading
from tape.core.errors import BrokerOverflowError
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.server.limits import Subscriber, Subscribers
from tape.server.refusals import NotNow
from tape.telemetry import Meters
from tape.wire.messages.entries import in_batch

MOST: Final = 256
MOST_BYTES: Final = 1 << 20
RECENT: Final = 8
EPOCH: Final = "tape-epoch"
LEAVING: Final = "the server is leaving; come back in a moment"

Deliver: TypeAlias = Callable[[Sequence[Entry]], Awaitable[None]]


class Line(Protocol):
    """The way to one reader: its metadata say that the stream is open, and each write waits for room."""

    async def send_initial_metadata(self, metadata: Sequence[tuple[str, str]]) -> None: ...
    async def write(self, message: bytes) -> None: ...


class Push:
    """One reading, until its reader leaves, it ends, or the server is to leave."""

    def __init__(self, reading: Reading, place: Subscriber, deliver: Deliver, *, ends: bool, most: int) -> None:
        self._reading = reading
        self._deliver = deliver
        self._ends = ends
        self._most = most
        self._woken = anyio.Event()
        self._place = place
        place.lag = lambda: reading.lag[0]
        place.goaway = lambda _: self._woken.set()
        reading.listen(lambda: self._woken.set())
        self.has_begun = False

    async def run(self) -> None:
        while not await self._replay():
            if await self._follow():
                return

    async def _replay(self) -> bool:
        """Tells a page of history; whether that was the end."""
        self._check()
        page = await self._reading.replay()
        self.has_begun = True
        for first in range(0, len(page.entries), self._most):
            await self._deliver(page.entries[first : first + self._most])
        return page.is_over and self._ends

    async def _follow(self) -> bool:
        """Tells what the tail has, as it comes; whether it ended, and was not just overtaken."""
        while not self._reading.is_overtaken:
            found = self._reading.take(self._most)
            if found is None:
                if self._is_over():
                    return True
                await self._wait()
            elif found:
                await self._deliver(found)
        return False

    def _is_over(self) -> bool:
        return self._reading.is_cut or (self._ends and self._reading.is_over)

    async def _wait(self) -> None:
        self._check()
        await self._woken.wait()
        self._woken = anyio.Event()

    def _check(self) -> None:
        if self._place.is_sent_away:
            raise NotNow(LEAVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a reader wants: of which run, read how, from where on, and whether it ends with the run.

    For some, what comes after 0 is what there is still; to others it is a gap if that is not the beginning.
    """

    run_id: RunId | None
    open_after: Callable[[int], Reading]
    after: int
    epoch: int
    ends: bool = False
    takes_what_is_left: bool = True
    most: int = MOST


def opening(epoch: int) -> Sequence[tuple[str, str]]:
    """What a reader is told first: in which epoch it begins, so that it knows another when it comes back."""
    return ((EPOCH, str(epoch)),)


async def push(places: Subscribers, meters: Meters, wish: Wish, line: Line, deliver: Deliver) -> None:
    """Delivers what comes after a place, for as long as it is listened to."""

    async def count(entries: Sequence[Entry]) -> None:
        await deliver(entries)
        meters.streamed.add(len(entries))

    with places.join(wish.run_id) as place:
        meters.opened.add()
        gap = await _push(place, wish, count, line)
        while gap is not None:
            meters.dropped.add()
            gap = await _push(place, replace(wish, after=gap.available_from - 1), count)


async def _push(
    place: Subscriber, wish: Wish, deliver: Deliver, line: Line | None = None
) -> BrokerOverflowError | None:
    """The gap, when the reader asked for the earliest there is and it is not the first."""
    reading = wish.open_after(wish.after)
    try:
        told = Push(reading, place, deliver, ends=wish.ends, most=wish.most)
        if line is not None:
            await line.send_initial_metadata(opening(wish.epoch))
        try:
            await told.run()
        except BrokerOverflowError as gap:
            if line is None or wish.after or told.has_begun or not wish.takes_what_is_left:
                raise
            return gap
        return None
    finally:
        reading.close()


class Batches:
    """Entries as messages: what many readers of the whole journal get together is put together once."""

    def __init__(self) -> None:
        self._recent: dict[tuple[int, int, int], list[bytes]] = {}

    def messages(self, entries: Sequence[Entry]) -> list[bytes]:
        """One message, or several where one would weigh too much."""
        first, last = entries[0], entries[-1]
        if last.global_seq - first.global_seq + 1 != len(entries):
            return _joined(entries)
        place = (first.epoch, first.global_seq, last.global_seq)
        found = self._recent.get(place)
        if found is None:
            found = _joined(entries)
            self._keep(place, found)
        return found

    def _keep(self, place: tuple[int, int, int], messages: list[bytes]) -> None:
        if len(self._recent) >= RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[place] = messages


def _joined(entries: Sequence[Entry]) -> list[bytes]:
    parts = list(map(in_batch, entries))
    if sum(map(len, parts)) <= MOST_BYTES:
        return [b"".join(parts)]
    messages, first, weight = [], 0, 0
    for place, part in enumerate(parts):
        if place > first and weight + len(part) > MOST_BYTES:
            messages.append(b"".join(parts[first:place]))
            first, weight = place, 0
        weight += len(part)
    return [*messages, b"".join(parts[first:])]
