"""Sends one SSE stream at the pace of its socket.

Catching up is a loop over pages of history and has no caps. Live, two callbacks drive the stream, one for new entries
and one for room in the socket, because waking a task for every event and client costs more than the event. A stream
that has caught up joins the fan-out group of its view.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import randrange
from typing import Final

import anyio

from tape.core.errors import TapeError
from tape.core.event import Entry
from tape.core.flow import EvictReason, Flow, Threshold
from tape.server.http.problem import Problem
from tape.server.sse.chunks import chunk, entry_chunks, shorten, synthetic_chunk, take_slice
from tape.server.sse.fan_out import BATCH, FanOutGroup, FanOutGroups
from tape.server.sse.lag import LagMonitor
from tape.server.sse.resync import ResyncingReader
from tape.server.sse.socket_writer import SocketWriter
from tape.server.sse.sources import StreamSource
from tape.telemetry import Meters, log
from tape.wire import sse
from tape.wire.frames import ClientEvicted, Goaway, ReplayComplete, SlowClientWarning, StreamError, Synthetic

DRAIN_S: Final = 0.5
SOONEST_MS: Final = 20
LATEST_MS: Final = 500


class StopReason(Enum):
    """Why a stream has stopped sending; BEHIND is not final."""

    BEHIND = "behind"
    OVER = "over"
    EVICTED = "evicted"
    GOAWAY = "goaway"
    FAILED = "failed"
    GONE = "gone"


class Sender:
    """Sends a source from a cursor on, until it ends, the client is too slow, or the client is gone."""

    def __init__(
        self,
        source: StreamSource,
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
        self._reader = ResyncingReader(source, after, epoch, writer.write, meters)
        self._lag_monitor = LagMonitor(flow, lambda: self._reader.stream.lag, self._warn, self._evict)
        self._replayed = 0
        self._is_complete = not is_replayed
        self._goaway_ms: int | None = None
        self._scope = anyio.CancelScope()
        self._stopped: StopReason | None = StopReason.BEHIND

    def goaway(self, reconnect_after_ms: int) -> None:
        """Ends the stream and tells the client when to reconnect; a stream that catches up ends after its page."""
        self._goaway_ms = reconnect_after_ms
        if self._stopped is None:
            self._stop(self._send_goaway(reconnect_after_ms))

    def lag(self) -> int:
        """How many entries a live stream is behind."""
        self._update_position()
        return self._reader.stream.lag[0] if self._stopped is None else 0

    def keepalive(self) -> bytes:
        """A comment; for a filtered stream that is current, the cursor it has reached."""
        self._update_position()
        is_current = self._stopped is None and not self._reader.stream.has_more
        return self._checkpoint() if is_current and self._source.is_filtered else chunk(sse.COMMENT)

    async def run(self, gone: Callable[[], Awaitable[None]]) -> StopReason:
        """Sends until the stream stops for good."""
        try:
            while True:
                stopped = await self._catch_up() or await self._stay_live(gone)
                if stopped is StopReason.OVER:
                    await self._send_end()
                if stopped is not StopReason.BEHIND:
                    return stopped
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a stream_error
            self.fail(error)
            return StopReason.FAILED
        finally:
            self._stopped = self._stopped or StopReason.GONE
            self._end_live()
            self._reader.stream.close()

    async def _catch_up(self) -> StopReason | None:
        while not self._writer.is_closing():
            if self._goaway_ms is not None:
                return self._send_goaway(self._goaway_ms)
            entries, scanned_to, is_over = await self._reader.replay()
            if self._reader.stream.selection.epoch != self._reader.epoch:
                # Only response headers carry the epoch of a new term, so the client reconnects. Everything it was sent
                # is from before that term, so the epoch it knows is right for its cursor.
                return self._send_goaway(randrange(SOONEST_MS, LATEST_MS))
            waiting = deque(entries)
            del entries  # `shorten` frees memory only if nothing else holds the entries
            if not await self._deliver(waiting):
                self._reader.reopen(self._reader.last_id)
                continue
            is_caught_up = scanned_to is not None and await self._drain_tail()
            if self._writer.is_closing():  # a client that closed only its half would get a cursor beyond its entries
                break
            if self._source.is_filtered and self._reader.stream.cursor > self._reader.last_id:
                self._writer.write(self._checkpoint())
            if is_over or is_caught_up:
                self._send_replay_complete()
                return StopReason.OVER if is_over else None
        return StopReason.GONE

    async def _drain_tail(self) -> bool:
        """Sends what the tail has meanwhile; whether the tail still reaches back to the cursor."""
        while not self._writer.is_closing() and (entries := self._reader.stream.take(BATCH)) is not None:
            if entries:
                self._write(entries)
                await self._writer.drain()
        return not self._reader.stream.is_overtaken

    async def _deliver(self, entries: deque[Entry]) -> bool:
        """Sends a page in slices; False if entries were dropped from memory because the client is slow."""
        is_complete = True
        while entries and not self._writer.is_closing():
            self._write(take_slice(entries, self._source.by))
            if not self._writer.connection.is_paused:
                continue
            with anyio.move_on_after(DRAIN_S):
                await self._writer.drain()
            if self._writer.connection.is_paused:
                is_complete = shorten(entries) and is_complete
                await self._writer.drain()
        return is_complete

    async def _stay_live(self, gone: Callable[[], Awaitable[None]]) -> StopReason:
        self._stopped = None
        with anyio.CancelScope() as self._scope:
            self._writer.set_callbacks(self._on_full, self.pump)
            self._reader.stream.listen(self.pump)
            self.pump()
            if self._stopped is None and self._goaway_ms is not None:  # it was called during the last page
                self._stopped = self._send_goaway(self._goaway_ms)
            if self._stopped is None:
                await gone()
        self._end_live()
        return self._stopped or StopReason.GONE

    def _end_live(self) -> None:
        self.leave_group()
        self._writer.set_callbacks(None, None)
        self._lag_monitor.stop()

    def pump(self) -> None:
        """Called when there may be more to send, or room for it."""
        if self._stopped is not None or self._group is not None:
            return
        try:
            self._advance()
        except Exception as error:  # noqa: BLE001 - the failure of one stream must not reach the others
            self.fail(error)

    def _advance(self) -> None:
        """Sends what the tail has while the socket accepts it."""
        if self._writer.is_closing():
            self._stop(StopReason.GONE)
            return
        reader, connection = self._reader.stream, self._writer.connection
        while not connection.is_paused:
            entries = reader.take(BATCH)
            if entries is None:
                break
            if entries:
                self._write(entries)
        if reader.is_overtaken:
            self._fall_behind()
        elif reader.has_more:
            self._lag_monitor.observe()
        else:
            self._on_current()

    def _fall_behind(self) -> None:
        """Goes back to history, unless the client is to be evicted."""
        self._lag_monitor.end_grace()
        if self._stopped is None:
            self._stop(StopReason.BEHIND)

    def _on_current(self) -> None:
        """Called when everything has been sent: ends an episode of lag, ends the stream, or joins a group."""
        if self._lag_monitor.is_warned:
            self._lag_monitor.observe()
        if self._reader.stream.is_over:
            self._stop(StopReason.OVER)
        elif self._reader.stream.view.is_journal_closed:
            self._stop(StopReason.GONE)
        elif not self._lag_monitor.is_warned and not self._writer.connection.is_paused:
            self._join_group()

    def _join_group(self) -> None:
        """Joins the streams at the tail's end; a filtered stream sends other entries and stays alone."""
        reader = self._reader.stream
        if not reader.selection.is_unfiltered:
            return
        self._group = self._groups.find(reader, self._source.by, self._meters.streamed)
        if self._group is not None:
            reader.stop_listening()
            self._group.join(self, self._writer.share(self._group))

    def leave_group(self) -> None:
        """Continues alone from the group's position."""
        self._update_position()
        if self._group is not None:
            self._group.leave(self)
            self._group = None
            self._writer.unshare()
            self._reader.stream.listen(self.pump)

    def _update_position(self) -> None:
        """Copies the group's position: a broadcast does not update each member."""
        if self._group is not None:
            self._reader.stream.move_to(self._group.reader)
            self._reader.last_id = max(self._reader.last_id, self._group.last_id)

    def _on_full(self) -> None:
        """Called when the socket's buffer is full."""
        if self._group is not None:
            self._group.detach(self)

    def fail(self, error: Exception) -> None:
        text = Problem.of(error).detail if isinstance(error, TapeError) else "the server failed"
        log.warning("stream.failed", error=type(error).__name__, reason=str(error))
        self._send(StreamError(error=text))
        self._stop(StopReason.FAILED)

    def _write(self, entries: Sequence[Entry]) -> None:
        by = self._source.by
        self._writer.write(entry_chunks(entries, by))
        self._reader.last_id = getattr(entries[-1], by)
        self._meters.streamed.add(len(entries))
        if not self._is_complete:
            self._replayed += len(entries)

    def _send(self, frame: Synthetic) -> None:
        self._writer.write(synthetic_chunk(frame))

    def _send_replay_complete(self) -> None:
        if not self._is_complete:
            self._is_complete = True
            self._send(ReplayComplete(replayed_count=self._replayed, last_event_id=self._reader.last_id))

    def _send_goaway(self, reconnect_after_ms: int) -> StopReason:
        self._send(Goaway(reconnect_after_ms=reconnect_after_ms))
        return StopReason.GOAWAY

    async def _send_end(self) -> None:
        """The run_end frame; before it the final cursor, if the client has none or an earlier one."""
        last_id = max(self._reader.last_id, self._reader.stream.cursor)
        end = await self._source.end(last_id)
        if last_id > self._reader.last_id or last_id == 0:
            self._writer.write(chunk(sse.checkpoint(last_id)))
        if end is not None:
            self._send(end)

    def _warn(self, flow: Flow, threshold: Threshold) -> None:
        self._meters.warned.add()
        entries, size = self._reader.stream.lag
        warning = SlowClientWarning(
            queue_size=entries,
            max_queued=flow.max_queued,
            queued_bytes=size,
            max_queued_bytes=flow.max_bytes,
            last_event_id=self._reader.last_id,
            threshold=threshold,
        )
        self._send(warning)

    def _evict(self, reason: EvictReason) -> None:
        self._meters.evicted.add(1, reason)
        self._meters.dropped.add()
        self._send(ClientEvicted(reason=reason, dropped_after=self._reader.last_id))
        self._stop(StopReason.EVICTED)

    def _checkpoint(self) -> bytes:
        self._reader.last_id = max(self._reader.last_id, self._reader.stream.cursor)
        return chunk(sse.checkpoint(self._reader.last_id))

    def _stop(self, reason: StopReason) -> None:
        self._stopped = reason
        self.leave_group()
        self._lag_monitor.stop()
        self._scope.cancel()
