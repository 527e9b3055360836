"""Pushes entries to one reader: pages of history first, then the tail, at the pace of the connection."""

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
TAKES: Final = 4
EPOCH: Final = "tape-epoch"
LEAVING: Final = "the server is shutting down; try again in a moment"

Replayed: TypeAlias = Callable[[StreamReader], Replay]
Finish: TypeAlias = Callable[[StreamReader], Awaitable[None]]


class StreamWriter(Protocol):
    """Writes to one reader: the metadata open the stream, and each write waits for room."""

    async def send_initial_metadata(self, metadata: Sequence[tuple[str, str]]) -> None: ...
    async def write(self, message: bytes) -> None: ...


class Push:
    """Pushes to one reader until it disconnects, its run ends, or the server drains."""

    def __init__(self, reader: StreamReader, place: Subscriber, options: "RpcStream", deliver: Deliver) -> None:
        self._reader = reader
        self._replay = options.replayed(reader, deliver)
        self._deliver = deliver
        self._finish = options.finish
        self._most = options.most
        self._woken = asyncio.Event()  # every reader waits at every burst, and anyio's event costs three times as much
        self._place = place
        place.lag = lambda: reader.lag[0]
        place.goaway = lambda _: self._woken.set()
        reader.listen(self._woken.set)
        self.has_begun = False

    async def run(self) -> None:
        while not await self._send_page():
            if await self._follow():
                break
        if self._finish is not None:
            await self._finish(self._reader)

    async def _send_page(self) -> bool:
        """Sends a page of history; whether that was the end."""
        self._check()
        is_over = await self._replay.send_page()
        self.has_begun = True
        return is_over and self._finish is not None

    async def _follow(self) -> bool:
        """Sends what the tail has; whether the stream ended, rather than was overtaken."""
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
        """What the tail has, several takes of it together."""
        found = self._reader.take(self._most)
        for _ in range(1, TAKES):
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
    """What a reader subscribes to: a run or the journal, how it is read and replayed, and after which position.

    `finish` sends the end of the run; without it the stream continues after that. With `takes_what_is_left` a reader
    from 0 begins at the first retained entry; otherwise it is a gap if that is not the first entry ever.
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
        """How the history is sent to a reader."""
        return Pages(reader, deliver, self.most) if self.in_blocks is None else self.in_blocks(reader)


def opening(epoch: int) -> Sequence[tuple[str, str]]:
    """The metadata that open a stream: its epoch, which the reader compares when it reconnects."""
    return ((EPOCH, str(epoch)),)


async def push(places: Subscribers, meters: Meters, options: RpcStream, writer: StreamWriter, deliver: Deliver) -> None:
    """Delivers what comes after a position until the reader disconnects."""

    async def count(entries: Sequence[Entry]) -> None:
        await deliver(entries)
        meters.streamed.add(len(entries))

    with places.join(options.run_id) as place:
        meters.opened.add()
        gap = await _push(place, options, count, writer)
        while gap is not None:
            meters.dropped.add()
            gap = await _push(place, replace(options, after=gap.available_from - 1), count)


async def _push(
    place: Subscriber, options: RpcStream, deliver: Deliver, writer: StreamWriter | None = None
) -> BrokerOverflowError | None:
    """The gap, when the reader asked for the earliest there is and it is not the first."""
    reader = options.open_after(options.after)
    try:
        pushed = Push(reader, place, options, deliver)
        if writer is not None:
            await writer.send_initial_metadata(opening(options.epoch))
        try:
            await pushed.run()
        except BrokerOverflowError as gap:
            if writer is None or options.after or pushed.has_begun or not options.takes_what_is_left:
                raise
            return gap
        return None
    finally:
        reader.close()
