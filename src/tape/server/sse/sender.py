"""One SSE stream: what a reader gives, in frames, at the pace of its socket.

Catching up is a loop of pages and has no caps. Live, the stream is driven by two callbacks, the tail has grown and the
socket has room, because waking a task for every event and client costs more than the event. Once it has caught up it
walks with the group of those who have.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import randrange
from typing import Final

import anyio

from tape.bus.selection import HistoryPage
from tape.bus.stream import StreamReader
from tape.core.errors import BrokerOverflowError, InvalidCursor, TapeError
from tape.core.event import Entry
from tape.core.flow import EvictReason, Flow, Threshold
from tape.server.http.problem import Problem
from tape.server.sse.chunks import chunk, first_slice, joined, said, shorten
from tape.server.sse.fan_out import BATCH, FanOutGroup, FanOutGroups
from tape.server.sse.lag import LagMonitor
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import Source
from tape.telemetry import Meters, log
from tape.wire import sse
from tape.wire.frames import (
    ClientEvicted,
    Goaway,
    ReplayComplete,
    SlowClientWarning,
    StateResyncRequired,
    StreamError,
)

PATIENCE_S: Final = 0.5
SOONEST_MS: Final = 20
LATEST_MS: Final = 500


class End(Enum):
    """Why a stream has stopped, for now or for good."""

    BEHIND = "behind"
    OVER = "over"
    EVICTED = "evicted"
    GOAWAY = "goaway"
    FAILED = "failed"
    GONE = "gone"


class Sender:
    """Sends a source from a place on, until it ends, its reader is too slow, or nobody listens."""

    def __init__(
        self,
        source: Source,
        after: int,
        writer: SocketWriter,
        groups: FanOutGroups,
        meters: Meters,
        *,
        flow: Flow | None,
        is_replayed: bool,
        epoch: int | None = None,
    ) -> None:
        self._source = source
        self._writer = writer
        self._groups = groups
        self._group: FanOutGroup | None = None
        self._meters = meters
        self._lag_monitor = LagMonitor(flow, self._warn, self._evict)
        self._last_id = after
        self._replayed = 0
        self._is_complete = not is_replayed
        self._epoch: int = source.epoch
        self._held = self._epoch if epoch is None else epoch
        self._reader = source.open(after, self._held)
        self._is_lost = False
        self._leave_after_ms: int | None = None
        self._scope = anyio.CancelScope()
        self._end: End | None = End.BEHIND

    async def _start_over(self) -> None:
        """For a reader whose cursor is of another journal; one that has begun since the handshake is named."""
        after, earliest = await self._source.restart()
        known, self._epoch = self._epoch, self._source.epoch
        self._held = self._epoch
        self._resync("epoch_reset", earliest, None if self._epoch == known else self._epoch)
        self._reopen(after)

    def _resync(self, reason: str, earliest: int, epoch: int | None = None) -> None:
        """Tells the reader that what it has is not the beginning of what follows."""
        self._meters.resynced.add(1, reason)
        self._meters.dropped.add()
        told = StateResyncRequired(
            reason=reason, last_delivered_id=self._last_id, earliest_available_id=earliest, epoch=epoch
        )
        self._writer.write(said(told))

    def goaway(self, reconnect_after_ms: int) -> None:
        """Sends the reader elsewhere; one that is catching up, after its page."""
        self._leave_after_ms = reconnect_after_ms
        if self._end is None:
            self._stop(self._leave())

    def lag(self) -> int:
        """How many entries it is behind, once it is live."""
        self._look()
        return self._reader.lag[0] if self._end is None else 0

    def quiet(self) -> bytes:
        """What to say when there is nothing to say: where a filtered stream has come to, or just a sign of life."""
        self._look()
        is_current = self._end is None and not self._reader.has_more
        return self._checkpoint() if is_current and self._source.is_filtered else chunk(sse.comment())

    async def run(self, gone: Callable[[], Awaitable[None]]) -> End:
        """Sends until there is an end."""
        try:
            while True:
                end = await self._catch_up() or await self._stay_live(gone)
                if end is End.OVER:
                    await self._tell_end()
                if end is not End.BEHIND:
                    return end
        except Exception as error:  # noqa: BLE001 - whatever it is, a stream says that it ends
            self.fail(error)
            return End.FAILED
        finally:
            self._end = self._end or End.GONE
            self._settle()
            self._reader.close()

    async def _catch_up(self) -> End | None:
        while not self._is_left():
            if self._leave_after_ms is not None:
                return self._leave()
            entries, scanned_to, is_over = await self._page()
            if self._reader.epoch != self._epoch:
                return self._leave_for_term()
            waiting = deque(entries)
            del entries  # what is let go of must be held by nobody
            if not await self._deliver(waiting):
                self._reopen(self._last_id)
                continue
            is_caught_up = scanned_to is not None and await self._drain_tail()
            if self._is_left():  # a reader that has closed only its half would hear of what it did not get
                break
            if self._source.is_filtered and self._reader.cursor > self._last_id:
                self._writer.write(self._checkpoint())
            if is_over or is_caught_up:
                self._complete()
                return End.OVER if is_over else None
        return End.GONE

    def _is_left(self) -> bool:
        return self._writer.is_closing

    def _leave(self) -> End:
        self._writer.write(said(Goaway(reconnect_after_ms=self._leave_after_ms or 0)))
        return End.GOAWAY

    def _leave_for_term(self) -> End:
        """Has the reader come back: it goes on in a new term, whose epoch only the headers of an answer tell it.

        What it was sent so far is from before that term, so the epoch it knows is right for its place.
        """
        self._leave_after_ms = randrange(SOONEST_MS, LATEST_MS)
        return self._leave()

    async def _page(self) -> HistoryPage:
        """The next page; where history is gone, or is another, the reader is told and goes on where it can."""
        try:
            page = await self._reader.replay()
        except BrokerOverflowError as gap:
            self._held = self._reader.epoch
            self._resync("ring_evicted", gap.available_from)
            self._reopen(gap.available_from - 1)
        except InvalidCursor:
            if self._is_lost:
                raise
            self._is_lost = True
            await self._start_over()
        else:
            self._is_lost = False
            self._held = self._reader.epoch
            return page
        return HistoryPage((), None, False)

    def _reopen(self, after: int) -> None:
        self._reader.close()
        self._reader = self._source.open(after, self._held)
        self._last_id = after

    async def _drain_tail(self) -> bool:
        """What has come meanwhile; whether the tail still reaches back to it."""
        while not self._writer.is_closing and (entries := self._reader.take(BATCH)) is not None:
            if entries:
                self._write(entries)
                await self._writer.drain()
        return not self._reader.is_overtaken

    async def _deliver(self, entries: deque[Entry]) -> bool:
        """Whether it was all of them: for a reader that makes it wait long it keeps little, and asks again later."""
        is_whole = True
        while entries and not self._writer.is_closing:
            self._write(first_slice(entries, self._source.by))
            if self._writer.is_paused and not await self._is_drained_soon():
                is_whole = shorten(entries) and is_whole
                await self._writer.drain()
        return is_whole

    async def _is_drained_soon(self) -> bool:
        with anyio.move_on_after(PATIENCE_S):
            await self._writer.drain()
        return not self._writer.is_paused

    def _complete(self) -> None:
        if not self._is_complete:
            self._is_complete = True
            self._writer.write(said(ReplayComplete(replayed_count=self._replayed, last_event_id=self._last_id)))

    async def _stay_live(self, gone: Callable[[], Awaitable[None]]) -> End:
        self._end = None
        with anyio.CancelScope() as self._scope:
            self._writer.when_full(self._rest_a_while, self.pump)
            self._reader.listen(self.pump)
            self.pump()
            if self._end is None and self._leave_after_ms is not None:  # it was sent away during its last page
                self._end = self._leave()
            if self._end is None:
                await gone()
        self._settle()
        return self._end or End.GONE

    async def _tell_end(self) -> None:
        """The last frame of a run; before it a cursor at the end, if the reader has none or an earlier one."""
        last_id = max(self._last_id, self._reader.cursor)
        told = await self._source.end(last_id)
        if last_id > self._last_id or last_id == 0:
            self._writer.write(chunk(sse.checkpoint(last_id)))
        if told is not None:
            self._writer.write(said(told))

    def part(self) -> None:
        """Leaves its group and goes on from where it is."""
        self._look()
        if self._group is not None:
            self._group.leave(self)
            self._group = None
            self._writer.own()
            self._reader.listen(self.pump)

    def _join(self) -> None:
        """Walks with those who have caught up, if it wants all that they want."""
        reader = self._reader
        if not isinstance(reader, StreamReader) or not reader.is_whole:
            return
        self._group = self._groups.meet(reader, self._source.by, self._meters.streamed)
        if self._group is not None:
            reader.ignore()
            self._group.join(self, self._writer.share(self._group))

    def _look(self) -> None:
        """Finds out where it is: its group does not say so at every step."""
        if self._group is not None and isinstance(self._reader, StreamReader):
            self._reader.move_to(self._group.reader)
            self._last_id = max(self._last_id, self._group.last_id)

    def _rest_a_while(self) -> None:
        """Called when the socket is full."""
        if self._group is not None:
            self._group.tire(self)

    def _settle(self) -> None:
        self.part()
        self._writer.when_full(None, None)
        self._lag_monitor.forget()

    def pump(self) -> None:
        """Called when there may be more to send, or room for it."""
        if self._end is not None or self._group is not None:
            return
        try:
            self._advance()
        except Exception as error:  # noqa: BLE001 - one stream's failure is not its neighbours'
            self.fail(error)

    def _advance(self) -> None:
        """Sends what there is, for as long as the socket takes it."""
        if self._writer.is_closing:
            self._stop(End.GONE)
            return
        reader, connection = self._reader, self._writer.connection
        while not connection.is_paused:
            entries = reader.take(BATCH)
            if entries is None:
                break
            if entries:
                self._write(entries)
        if reader.is_overtaken:
            self._fall_behind()
        elif reader.has_more:
            self._observe()
        else:
            self._rest()

    def _fall_behind(self) -> None:
        """Goes back to history, unless it is beyond its cap as well."""
        if self._lag_monitor.is_beyond:
            self._judge()
        if self._end is None:
            self._stop(End.BEHIND)

    def _rest(self) -> None:
        """Everything has been sent: an episode may be over, and so may the stream."""
        if self._lag_monitor.is_warned:
            self._observe()
        if self._reader.is_over:
            self._stop(End.OVER)
        elif self._reader.is_journal_closed:
            self._stop(End.GONE)
        elif not self._lag_monitor.is_warned and not self._writer.is_paused:
            self._join()

    def fail(self, error: Exception) -> None:
        known = Problem.of(error).detail if isinstance(error, TapeError) else "the server failed"
        log.warning("stream.failed", error=type(error).__name__, reason=str(error))
        self._writer.write(said(StreamError(error=known)))
        self._stop(End.FAILED)

    def _write(self, entries: Sequence[Entry]) -> None:
        by = self._source.by
        self._writer.write(joined(entries, by))
        self._last_id = getattr(entries[-1], by)
        self._meters.streamed.add(len(entries))
        if not self._is_complete:
            self._replayed += len(entries)

    def _observe(self) -> None:
        self._lag_monitor.observe(self._reader.lag, self._judge)

    def _judge(self) -> None:
        if self._end is None:
            self._lag_monitor.judge(self._reader.lag)

    def _warn(self, flow: Flow, threshold: Threshold) -> None:
        self._meters.warned.add()
        entries, size = self._reader.lag
        warning = SlowClientWarning(
            queue_size=entries,
            max_queued=flow.max_queued,
            queued_bytes=size,
            max_queued_bytes=flow.max_bytes,
            last_event_id=self._last_id,
            threshold=threshold,
        )
        self._writer.write(said(warning))

    def _evict(self, reason: EvictReason) -> None:
        self._meters.evicted.add(1, reason)
        self._meters.dropped.add()
        self._writer.write(said(ClientEvicted(reason=reason, dropped_after=self._last_id)))
        self._stop(End.EVICTED)

    def _checkpoint(self) -> bytes:
        self._last_id = max(self._last_id, self._reader.cursor)
        return chunk(sse.checkpoint(self._last_id))

    def _stop(self, end: End) -> None:
        self._end = end
        self.part()
        self._scope.cancel()
