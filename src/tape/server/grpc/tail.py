"""Pushing entries to one reader: pages of history first, then what the tail has, at the pace of the connection."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from tape.bus.stream import StreamReader
from tape.core.errors import BrokerOverflowError
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.server_unavailable import ServerUnavailable
from tape.server.grpc.replay import Deliver, Pages, Replay
from tape.server.sse.subscribers import Subscriber, Subscribers
from tape.telemetry import Meters

MOST: Final = 256
HANDFULS: Final = 4
EPOCH: Final = "tape-epoch"
LEAVING: Final = "the server is shutting down; try again in a moment"

Replayed: TypeAlias = Callable[[StreamReader], Replay]
Finish: TypeAlias = Callable[[StreamReader], Awaitable[None]]


class Line(Protocol):
    """The way to one reader: its metadata say that the stream is open, and each write waits for room."""

    async def send_initial_metadata(self, metadata: Sequence[tuple[str, str]]) -> None: ...
    async def write(self, message: bytes) -> None: ...


class Push:
    """One reader, until its reader leaves, it ends, or the server is to leave."""

    def __init__(self, reader: StreamReader, place: Subscriber, options: "RpcStream", deliver: Deliver) -> None:
        self._reader = reader
        self._replay = options.replayed(reader, deliver)
        self._deliver = deliver
        self._finish = options.finish
        self._most = options.most
        self._woken = asyncio.Event()  # every reader waits at every burst: anyio's event is three times as dear
        self._place = place
        place.lag = lambda: reader.lag[0]
        place.goaway = lambda _: self._woken.set()
        reader.listen(self._woken.set)
        self.has_begun = False

    async def run(self) -> None:
        while not await self._tell_page():
            if await self._follow():
                break
        if self._finish is not None:
            await self._finish(self._reader)

    async def _tell_page(self) -> bool:
        """Tells a page of history; whether that was the end."""
        self._check()
        is_over = await self._replay.tell()
        self.has_begun = True
        return is_over and self._finish is not None

    async def _follow(self) -> bool:
        """Tells what the tail has, as it comes; whether it ended, and was not just overtaken."""
        while not self._reader.is_overtaken:
            found = self._taken()
            if found is None:
                if self._is_over():
                    return True
                await self._wait()
            elif found:
                await self._deliver(found)
        return False

    def _taken(self) -> Sequence[Entry] | None:
        """What the tail has, a few handfuls of it at once."""
        found = self._reader.take(self._most)
        for _ in range(1, HANDFULS):
            room = self._most - len(found or ())
            more = self._reader.take(room) if found and room else None
            if not found or not more:
                break
            found = [*found, *more]
        return found

    def _is_over(self) -> bool:
        return self._finish is not None and self._reader.is_over

    async def _wait(self) -> None:
        self._check()
        await self._woken.wait()
        self._woken.clear()

    def _check(self) -> None:
        if self._place.is_goaway_sent or self._reader.view.is_journal_closed:
            raise ServerUnavailable(LEAVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcStream:
    """What a reader wants: of which run, read and replayed how, from where on, and how it is told of the run's end.

    Without a way to `finish` the stream goes on after that.

    For some, what comes after 0 is what there is still; to others it is a gap if that is not the beginning.
    """

    run_id: RunId | None
    open_after: Callable[[int], StreamReader]
    after: int
    epoch: int
    finish: Finish | None = None
    takes_what_is_left: bool = True
    most: int = MOST
    in_blocks: Replayed | None = None

    def replayed(self, reader: StreamReader, deliver: Deliver) -> Replay:
        """How the history of a reader is told."""
        return Pages(reader, deliver, self.most) if self.in_blocks is None else self.in_blocks(reader)


def opening(epoch: int) -> Sequence[tuple[str, str]]:
    """What a reader is told first: in which epoch it begins, so that it knows another when it comes back."""
    return ((EPOCH, str(epoch)),)


async def push(places: Subscribers, meters: Meters, options: RpcStream, line: Line, deliver: Deliver) -> None:
    """Delivers what comes after a place, for as long as it is listened to."""

    async def count(entries: Sequence[Entry]) -> None:
        await deliver(entries)
        meters.streamed.add(len(entries))

    with places.join(options.run_id) as place:
        meters.opened.add()
        gap = await _push(place, options, count, line)
        while gap is not None:
            meters.dropped.add()
            gap = await _push(place, replace(options, after=gap.available_from - 1), count)


async def _push(
    place: Subscriber, options: RpcStream, deliver: Deliver, line: Line | None = None
) -> BrokerOverflowError | None:
    """The gap, when the reader asked for the earliest there is and it is not the first."""
    reader = options.open_after(options.after)
    try:
        told = Push(reader, place, options, deliver)
        if line is not None:
            await line.send_initial_metadata(opening(options.epoch))
        try:
            await told.run()
        except BrokerOverflowError as gap:
            if line is None or options.after or told.has_begun or not options.takes_what_is_left:
                raise
            return gap
        return None
    finally:
        reader.close()
