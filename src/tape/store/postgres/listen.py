"""LISTEN on Postgres: one connection that is opened again when it is lost, and a check that notifications arrive."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn, TypeAlias

import anyio
import asyncpg

from tape.store.postgres.errors import LOST
from tape.store.timeouts import Timeouts
from tape.telemetry import log

FIRST_BACKOFF_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 30.0
NO_ECHO: Final = "no notification arrives; give TAPE_LISTEN_URL, a direct connection to the same database"

Connect: TypeAlias = Callable[[], Awaitable[asyncpg.Connection]]
Notify: TypeAlias = Callable[[str], Awaitable[object]]
OnNotify: TypeAlias = Callable[[int, str], None]
OnGap: TypeAlias = Callable[[], None]


class Listener:
    """Listens on channels and reports each notification with the process that sent it.

    It calls `on_gap` when notifications may have been missed, so that the caller reads again. `on_state` gets
    whether notifications arrive: a connection that does not receive its own is behind a pooler, or one to another
    database. `on_queue_usage` gets how full the server's queue of notifications is.
    """

    def __init__(
        self,
        connect: Connect,
        notify: Notify,
        channels: tuple[str, ...],
        timeouts: Timeouts,
        *,
        on_state: Callable[[bool, str], None] = lambda *_: None,
        on_queue_usage: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._connect = connect
        self._notify = notify
        self._channels = channels
        self._timeouts = timeouts
        self._on_state = on_state
        self._on_queue_usage = on_queue_usage
        self.is_listening = False

    async def run(self, on_notify: OnNotify, on_gap: OnGap) -> NoReturn:
        backoff = FIRST_BACKOFF_S
        while True:
            began = anyio.current_time()
            with suppress(asyncpg.PostgresError, *LOST):
                await self._listen(await self._connect(), on_notify, on_gap)
            self._on_state(False, "the connection was lost")
            is_steady = anyio.current_time() - began > self._timeouts.keep_alive_s
            backoff = FIRST_BACKOFF_S if is_steady else min(2 * backoff, LONGEST_BACKOFF_S)
            await anyio.sleep(backoff)

    async def _listen(self, connection: asyncpg.Connection, on_notify: OnNotify, on_gap: OnGap) -> None:
        """Returns when the connection is lost, and raises when it is found to be half open."""
        lost = anyio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            for channel in self._channels:
                await connection.add_listener(channel, lambda _, pid, __, payload: on_notify(pid, str(payload)))
            self.is_listening = await receives_notifications(connection, self._notify, self._timeouts.echo_s)
            self._on_state(self.is_listening, NO_ECHO)
            on_gap()
            while not lost.is_set():
                with anyio.move_on_after(self._timeouts.keep_alive_s):
                    await lost.wait()
                with anyio.fail_after(self._timeouts.echo_s):
                    usage = await connection.fetchval("SELECT pg_catalog.pg_notification_queue_usage()")
                self._on_queue_usage(usage)
        finally:
            self.is_listening = False
            on_gap()
            connection.terminate()


class ArrivalLog:
    """Logs once when notifications stop arriving, and once when they arrive again."""

    def __init__(self, degraded: str, recovered: str, channels: tuple[str, ...]) -> None:
        self._degraded = degraded
        self._recovered = recovered
        self._channels = channels
        self._is_degraded = False

    def on_state(self, is_listening: bool, reason: str) -> None:
        if is_listening and self._is_degraded:
            log.info(self._recovered, channels=self._channels)
        elif not is_listening and not self._is_degraded:
            log.warning(self._degraded, reason=reason, channels=self._channels)
        self._is_degraded = not is_listening


async def receives_notifications(connection: asyncpg.Connection, notify: Notify, timeout_s: float) -> bool:
    """Whether a notification that another connection sends arrives on this one."""
    channel, echo = f"tape_echo_{connection.get_server_pid()}", anyio.Event()
    await connection.add_listener(channel, lambda *_: echo.set())
    await notify(channel)
    with anyio.move_on_after(timeout_s):
        await echo.wait()
    return echo.is_set()
