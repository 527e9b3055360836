"""One SSE stream: what a reading gives, in frames, at the pace of its socket.

Catching up is a loop of pages and has no caps. Live, the stream is driven by two callbacks, the tail has grown and the
socket has room, because waking a task for every event and client costs more than the event. Once it has caught up it
walks with the company of those who have.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import randrange
from typing import Final

import anyio

from tape.bus.selection import Replay
from tape.bus.stream import Reading as JournalReading
from tape.core.errors import BrokerOverflowError, InvalidCursor, TapeError
from tape.core.event import Entry
from tape.core.flow import Flow, Reason, Threshold
from tape.server.http.problem import Problem
from tape.server.sse.chunks import chunk, first_slice, joined, said, shorten
from tape.server.sse.fan_out import BATCH, Companies, Company
from tape.server.sse.lag import Watch
from tape.server.sse.outlet import Outlet
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
        outlet: Outlet,
        companies: Companies,
        meters: Meters,
        *,
        flow: Flow | None,
        is_replayed: bool,
        epoch: int | None = None,
    ) -> None:
        self._source = source
        self._outlet = outlet
        self._companies = companies
        self._company: Company | None = None
        self._meters = meters
        self._watch = Watch(flow, self._warn, self._evict)
        self._last_id = after
        self._replayed = 0
        self._is_complete = not is_replayed
        self._epoch: int = source.epoch
        self._held = self._epoch if epoch is None else epoch
        self._reading = source.open(after, self._held)
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
        self._outlet.write(said(told))

    def goaway(self, reconnect_after_ms: int) -> None:
        """Sends the reader elsewhere; one that is catching up, after its page."""
        self._leave_after_ms = reconnect_after_ms
        if self._end is None:
            self._stop(self._leave())

    def lag(self) -> int:
        """How many entries it is behind, once it is live."""
        self._look()
        return self._reading.lag[0] if self._end is None else 0

    def quiet(self) -> bytes:
        """What to say when there is nothing to say: where a filtered stream has come to, or just a sign of life."""
        self._look()
        is_current = self._end is None and not self._reading.has_more
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
            self._reading.close()

    async def _catch_up(self) -> End | None:
        while not self._is_left():
            if self._leave_after_ms is not None:
                return self._leave()
            entries, looked_to, is_over = await self._page()
            if self._reading.epoch != self._epoch:
                return self._leave_for_term()
            waiting = deque(entries)
            del entries  # what is let go of must be held by nobody
            if not await self._deliver(waiting):
                self._reopen(self._last_id)
                continue
            is_caught_up = looked_to is not None and await self._drain_tail()
            if self._is_left():  # a reader that has closed only its half would hear of what it did not get
                break
            if self._source.is_filtered and self._reading.cursor > self._last_id:
                self._outlet.write(self._checkpoint())
            if is_over or is_caught_up:
                self._complete()
                return End.OVER if is_over else None
        return End.GONE

    def _is_left(self) -> bool:
        return self._outlet.is_closing

    def _leave(self) -> End:
        self._outlet.write(said(Goaway(reconnect_after_ms=self._leave_after_ms or 0)))
        return End.GOAWAY

    def _leave_for_term(self) -> End:
        """Has the reader come back: it goes on in a new term, whose epoch only the headers of an answer tell it.

        What it was sent so far is from before that term, so the epoch it knows is right for its place.
        """
        self._leave_after_ms = randrange(SOONEST_MS, LATEST_MS)
        return self._leave()

    async def _page(self) -> Replay:
        """The next page; where history is gone, or is another, the reader is told and goes on where it can."""
        try:
            page = await self._reading.replay()
        except BrokerOverflowError as gap:
            self._held = self._reading.epoch
            self._resync("ring_evicted", gap.available_from)
            self._reopen(gap.available_from - 1)
        except InvalidCursor:
            if self._is_lost:
                raise
            self._is_lost = True
            await self._start_over()
        else:
            self._is_lost = False
            self._held = self._reading.epoch
            return page
        return Replay((), None, False)

    def _reopen(self, after: int) -> None:
        self._reading.close()
        self._reading = self._source.open(after, self._held)
        self._last_id = after

    async def _drain_tail(self) -> bool:
        """What has come meanwhile; whether the tail still reaches back to it."""
        while not self._outlet.is_closing and (entries := self._reading.take(BATCH)) is not None:
            if entries:
                self._write(entries)
                await self._outlet.drain()
        return not self._reading.is_overtaken

    async def _deliver(self, entries: deque[Entry]) -> bool:
        """Whether it was all of them: for a reader that makes it wait long it keeps little, and asks again later."""
        is_whole = True
        while entries and not self._outlet.is_closing:
            self._write(first_slice(entries, self._source.by))
            if self._outlet.is_paused and not await self._is_drained_soon():
                is_whole = shorten(entries) and is_whole
                await self._outlet.drain()
        return is_whole

    async def _is_drained_soon(self) -> bool:
        with anyio.move_on_after(PATIENCE_S):
            await self._outlet.drain()
        return not self._outlet.is_paused

    def _complete(self) -> None:
        if not self._is_complete:
            self._is_complete = True
            self._outlet.write(said(ReplayComplete(replayed_count=self._replayed, last_event_id=self._last_id)))

    async def _stay_live(self, gone: Callable[[], Awaitable[None]]) -> End:
        self._end = None
        with anyio.CancelScope() as self._scope:
            self._outlet.when_full(self._rest_a_while, self.pump)
            self._reading.listen(self.pump)
            self.pump()
            if self._end is None and self._leave_after_ms is not None:  # it was sent away during its last page
                self._end = self._leave()
            if self._end is None:
                await gone()
        self._settle()
        return self._end or End.GONE

    async def _tell_end(self) -> None:
        """The last frame of a run; before it a cursor at the end, if the reader has none or an earlier one."""
        last_id = max(self._last_id, self._reading.cursor)
        told = await self._source.end(last_id)
        if last_id > self._last_id or last_id == 0:
            self._outlet.write(chunk(sse.checkpoint(last_id)))
        if told is not None:
            self._outlet.write(said(told))

    def part(self) -> None:
        """Leaves its company and goes on from where it is."""
        self._look()
        if self._company is not None:
            self._company.leave(self)
            self._company = None
            self._outlet.own()
            self._reading.listen(self.pump)

    def _join(self) -> None:
        """Walks with those who have caught up, if it wants all that they want."""
        reading = self._reading
        if not isinstance(reading, JournalReading) or not reading.is_whole:
            return
        self._company = self._companies.meet(reading, self._source.by, self._meters.streamed)
        if self._company is not None:
            reading.ignore()
            self._company.join(self, self._outlet.share(self._company))

    def _look(self) -> None:
        """Finds out where it is: its company does not say so at every step."""
        if self._company is not None and isinstance(self._reading, JournalReading):
            self._reading.catch_up_with(self._company.reading)
            self._last_id = max(self._last_id, self._company.last_id)

    def _rest_a_while(self) -> None:
        """Called when the socket is full."""
        if self._company is not None:
            self._company.tire(self)

    def _settle(self) -> None:
        self.part()
        self._outlet.when_full(None, None)
        self._watch.forget()

    def pump(self) -> None:
        """Called when there may be more to send, or room for it."""
        if self._end is not None or self._company is not None:
            return
        try:
            self._advance()
        except Exception as error:  # noqa: BLE001 - one stream's failure is not its neighbours'
            self.fail(error)

    def _advance(self) -> None:
        """Sends what there is, for as long as the socket takes it."""
        if self._outlet.is_closing:
            self._stop(End.GONE)
            return
        reading, connection = self._reading, self._outlet.connection
        while not connection.is_paused:
            entries = reading.take(BATCH)
            if entries is None:
                break
            if entries:
                self._write(entries)
        if reading.is_overtaken:
            self._fall_behind()
        elif reading.has_more:
            self._observe()
        else:
            self._rest()

    def _fall_behind(self) -> None:
        """Goes back to history, unless it is beyond its cap as well."""
        if self._watch.is_beyond:
            self._judge()
        if self._end is None:
            self._stop(End.BEHIND)

    def _rest(self) -> None:
        """Everything has been sent: an episode may be over, and so may the stream."""
        if self._watch.is_warned:
            self._observe()
        if self._reading.is_over:
            self._stop(End.OVER)
        elif self._reading.is_cut:
            self._stop(End.GONE)
        elif not self._watch.is_warned and not self._outlet.is_paused:
            self._join()

    def fail(self, error: Exception) -> None:
        known = Problem.of(error).detail if isinstance(error, TapeError) else "the server failed"
        log.warning("stream.failed", error=type(error).__name__, reason=str(error))
        self._outlet.write(said(StreamError(error=known)))
        self._stop(End.FAILED)

    def _write(self, entries: Sequence[Entry]) -> None:
        by = self._source.by
        self._outlet.write(joined(entries, by))
        self._last_id = getattr(entries[-1], by)
        self._meters.streamed.add(len(entries))
        if not self._is_complete:
            self._replayed += len(entries)

    def _observe(self) -> None:
        self._watch.observe(self._reading.lag, self._judge)

    def _judge(self) -> None:
        if self._end is None:
            self._watch.judge(self._reading.lag)

    def _warn(self, flow: Flow, threshold: Threshold) -> None:
        self._meters.warned.add()
        entries, size = self._reading.lag
        warning = SlowClientWarning(
            queue_size=entries,
            max_queued=flow.max_queued,
            queued_bytes=size,
            max_queued_bytes=flow.max_bytes,
            last_event_id=self._last_id,
            threshold=threshold,
        )
        self._outlet.write(said(warning))

    def _evict(self, reason: Reason) -> None:
        self._meters.evicted.add(1, reason)
        self._meters.dropped.add()
        self._outlet.write(said(ClientEvicted(reason=reason, dropped_after=self._last_id)))
        self._stop(End.EVICTED)

    def _checkpoint(self) -> bytes:
        self._last_id = max(self._last_id, self._reading.cursor)
        return chunk(sse.checkpoint(self._last_id))

    def _stop(self, end: End) -> None:
        self._end = end
        self.part()
        self._scope.cancel()
