"""Hearing that an outbox has grown: one direct connection that listens, and an account of how well it hears."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import anyio
import asyncpg

from tape.store.postgres.errors import LOST
from tape.store.timeouts import Timeouts
from tape.telemetry import log

FIRST_BACKOFF_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 30.0
FULL_QUEUE: Final = 0.25


class Channels:
    """Calls whenever one of its channels is notified, and whenever something may have been missed.

    A connection that does not hear what is said in the outbox's database is behind a pooler, or is one to another
    database; then only the poll behind it is left. While it does not hear, it is degraded, and says so once.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection]],
        notify: Callable[[str], Awaitable[None]],
        channels: tuple[str, ...],
        timeouts: Timeouts,
    ) -> None:
        self._connect = connect
        self._notify = notify
        self._channels = channels
        self._patience = timeouts
        self._is_told = False
        self.is_listening = False

    async def run(self, call: Callable[[], None]) -> NoReturn:
        backoff = FIRST_BACKOFF_S
        while True:
            began = anyio.current_time()
            with suppress(asyncpg.PostgresError, TimeoutError, *LOST):
                await self._listen(await self._connect(), call)
            self._degrade("the connection was lost")
            is_steady = anyio.current_time() - began > self._patience.keep_alive_s
            backoff = FIRST_BACKOFF_S if is_steady else min(2 * backoff, LONGEST_BACKOFF_S)
            await anyio.sleep(backoff)

    async def _listen(self, connection: asyncpg.Connection, call: Callable[[], None]) -> None:
        """Until the connection is lost or found to be half open."""
        lost = anyio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            for channel in self._channels:
                await connection.add_listener(channel, lambda *_: call())
            await self._check_echo(connection)
            call()  # whatever was said before it listened is found by looking
            while not lost.is_set():
                with anyio.move_on_after(self._patience.keep_alive_s):
                    await lost.wait()
                with anyio.fail_after(self._patience.echo_s):
                    judge(await connection.fetchval("SELECT pg_catalog.pg_notification_queue_usage()"))
        finally:
            self.is_listening = False
            connection.terminate()

    async def _check_echo(self, connection: asyncpg.Connection) -> None:
        """Whether a word said where the outbox is written is heard on this connection."""
        channel, echo = f"tape_echo_{connection.get_server_pid()}", anyio.Event()
        await connection.add_listener(channel, lambda *_: echo.set())
        await self._notify(channel)
        with anyio.move_on_after(self._patience.echo_s):
            await echo.wait()
        self.is_listening = echo.is_set()
        if self.is_listening:
            self._recover()
        else:
            self._degrade("no notification is heard; give TAPE_LISTEN_URL, a direct connection to the same database")

    def _degrade(self, reason: str) -> None:
        if not self._is_told:
            log.warning("outbox.degraded", reason=reason, channels=self._channels)
        self._is_told = True

    def _recover(self) -> None:
        if self._is_told:
            log.info("outbox.recovered", channels=self._channels)
        self._is_told = False


def judge(usage: float) -> None:
    """Somebody who listens inside a transaction holds up the notifications of the whole server."""
    if usage >= FULL_QUEUE:
        log.warning("outbox.notify_queue_filling", usage=usage)
