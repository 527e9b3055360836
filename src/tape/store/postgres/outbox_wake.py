"""Waking the listeners of an outbox on Postgres: notifications are hints, and a poll never relies on them."""

from collections.abc import Callable
from typing import Final, NoReturn

from tape.store.postgres.listen import ArrivalLog, Connect, Listener, Notify
from tape.store.timeouts import Timeouts
from tape.telemetry import log

FULL_QUEUE: Final = 0.25


class OutboxWake:
    """Calls back whenever a channel is notified or a notification may have been missed; logs when none arrive."""

    def __init__(self, connect: Connect, notify: Notify, channels: tuple[str, ...], timeouts: Timeouts) -> None:
        arrivals = ArrivalLog("outbox.degraded", "outbox.recovered", channels)
        self._listener = Listener(
            connect, notify, channels, timeouts, on_state=arrivals.on_state, on_queue_usage=warn_of_full_queue
        )

    @property
    def is_listening(self) -> bool:
        return self._listener.is_listening

    async def run(self, on_change: Callable[[], None]) -> NoReturn:
        await self._listener.run(lambda *_: on_change(), on_change)


def warn_of_full_queue(usage: float) -> None:
    """A session that listens inside a transaction holds up the notifications of the whole server."""
    if usage >= FULL_QUEUE:
        log.warning("outbox.notify_queue_filling", usage=usage)
