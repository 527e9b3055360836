"""Reads a source for one client, and tells the client to resync where its cursor cannot be resumed."""

from collections.abc import Callable
from typing import Final

from tape.bus.selection import HistoryPage
from tape.core.errors import BrokerOverflowError, InvalidCursor
from tape.server.sse.chunks import synthetic_chunk
from tape.server.sse.sources import StreamSource
from tape.telemetry import Meters
from tape.wire.frames import StateResyncRequired

NO_ENTRIES: Final = HistoryPage((), None, False)


class ResyncingReader:
    """A stream reader that is reopened after a gap or an epoch change.

    `last_id` is the client's cursor, `epoch` the epoch that was sent to the client last.
    """

    def __init__(
        self, source: StreamSource, after: int, epoch: int | None, write: Callable[[bytes], None], meters: Meters
    ) -> None:
        self._source = source
        self._write = write
        self._meters = meters
        self.last_id = after
        self.epoch: int = source.epoch
        self._cursor_epoch = self.epoch if epoch is None else epoch
        self._has_restarted = False
        self.stream = source.open(after, self._cursor_epoch)

    async def replay(self) -> HistoryPage:
        """The next page of history; an empty one after a resync."""
        try:
            page = await self.stream.replay()
        except BrokerOverflowError as gap:
            self._cursor_epoch = self.stream.selection.epoch
            self._tell("ring_evicted", gap.available_from)
            self.reopen(gap.available_from - 1)
        except InvalidCursor:
            if self._has_restarted:
                raise
            self._has_restarted = True
            await self._restart()
        else:
            self._has_restarted = False
            self._cursor_epoch = self.stream.selection.epoch
            return page
        return NO_ENTRIES

    def reopen(self, after: int) -> None:
        self.stream.close()
        self.stream = self._source.open(after, self._cursor_epoch)
        self.last_id = after

    async def _restart(self) -> None:
        """Starts over for a cursor of another epoch; names the epoch if it began after the handshake."""
        after, earliest = await self._source.restart()
        sent, self.epoch = self.epoch, self._source.epoch
        self._cursor_epoch = self.epoch
        self._tell("epoch_reset", earliest, None if self.epoch == sent else self.epoch)
        self.reopen(after)

    def _tell(self, reason: str, earliest: int, epoch: int | None = None) -> None:
        self._meters.resynced.add(1, reason)
        self._meters.dropped.add()
        frame = StateResyncRequired(
            reason=reason, last_delivered_id=self.last_id, earliest_available_id=earliest, epoch=epoch
        )
        self._write(synthetic_chunk(frame))
