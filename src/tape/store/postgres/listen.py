"""Hearing that the journal has grown: one LISTEN connection, and a poll that never relies on it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import anyio
import asyncpg

from tape.core.ids import GlobalSeq
from tape.store.hints import UNKNOWN, Hints, head_of
from tape.store.postgres.errors import LOST
from tape.store.timeouts import Timeouts

CHANNEL: Final = "tape"
OWN_S: Final = 0.25  # what this node appends its appender passes on long before
FIRST_BACKOFF_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 30.0


class Listener:
    """Listens while it can, and says how long a waiter may trust the silence.

    It begins with the first wait: a process that only writes would hear nothing but itself. A connection that does not
    hear its own notification is behind a pooler, and is worth no more than none.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection]],
        own_process: Callable[[], int],
        timeouts: Timeouts,
    ) -> None:
        self._connect = connect
        self._own_process = own_process
        self._patience = timeouts
        self._is_wanted = asyncio.Event()
        self._hints = Hints()
        self._own_head: GlobalSeq | None = None
        self.is_listening = False

    async def tell(self, head: GlobalSeq) -> None:
        return  # the append itself notifies, in its own transaction

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        """Returns when the journal is said to be beyond a position, or when a run has changed."""
        self._is_wanted.set()
        await self._hints.wait_beyond(cursor)

    async def run(self) -> NoReturn:
        await self._is_wanted.wait()
        backoff = FIRST_BACKOFF_S
        while True:
            began = anyio.current_time()
            with suppress(asyncpg.PostgresError, *LOST):
                await self._listen(await self._connect())
            is_steady = anyio.current_time() - began > self._patience.keep_alive_s
            backoff = FIRST_BACKOFF_S if is_steady else min(2 * backoff, LONGEST_BACKOFF_S)
            await anyio.sleep(backoff)

    async def _listen(self, connection: asyncpg.Connection) -> None:
        """Until the connection is lost or found to be half open."""
        lost = anyio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            await connection.add_listener(CHANNEL, self._hear)
            self.is_listening = await self._has_echo(connection)
            self._hints.take(UNKNOWN)  # whatever was said before it listened is found by looking
            while not lost.is_set():
                with anyio.move_on_after(self._patience.keep_alive_s):
                    await lost.wait()
                with anyio.fail_after(self._patience.echo_s):
                    await connection.execute("SELECT 1")  # a peer that is gone without a word is found out
        finally:
            self.is_listening = False
            self._hints.take(UNKNOWN)
            connection.terminate()

    async def _has_echo(self, connection: asyncpg.Connection) -> bool:
        """Whether a word said on another connection is heard on this one."""
        channel, echo = f"tape_echo_{connection.get_server_pid()}", anyio.Event()
        await connection.add_listener(channel, lambda *_: echo.set())
        other = await self._connect()
        try:
            await other.execute(f"NOTIFY {channel}")
        finally:
            other.terminate()
        with anyio.move_on_after(self._patience.echo_s):
            await echo.wait()
        return echo.is_set()

    def _hear(self, connection: object, process: int, channel: str, payload: object) -> None:
        head = head_of(str(payload))
        if process == self._own_process():
            self._hear_own(head)
        else:
            self._hints.take(head)

    def _hear_own(self, head: GlobalSeq) -> None:
        """Wakes for what this node appends a little later, and once for all that was notified until then.

        Its appender passes it on, and reading it again would double the work; what was appended past that appender is
        still found sooner than by the poll.
        """
        if self._own_head is None:
            asyncio.get_running_loop().call_later(OWN_S, self._wake_for_own)
        self._own_head = max(self._own_head or head, head)

    def _wake_for_own(self) -> None:
        head, self._own_head = self._own_head, None
        self._hints.take(UNKNOWN if head is None else head)
