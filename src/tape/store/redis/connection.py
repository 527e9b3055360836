"""Connections to one Redis server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import anyio
from redis.asyncio.connection import Connection, parse_url
from redis.exceptions import NoScriptError, ResponseError

from tape.core.errors import UsageError
from tape.store.redis.errors import LOST, lost, translate
from tape.store.timeouts import Timeouts

MOST: Final = 16

Command: TypeAlias = Sequence[str | bytes | int]
Exchange: TypeAlias = Callable[..., Awaitable[list[Any]]]


class Connections:
    """A few connections, each of which has one exchange at a time.

    A connection whose exchange was cancelled or lost may still receive an answer that nobody waits for, so it is
    closed and not used again.
    """

    def __init__(self, url: str, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._options: dict[str, Any] = {**parse_url(url)}
        self._class: type[Connection] = self._options.pop("connection_class", Connection)
        self._idle: list[Connection] = []
        self._slots = anyio.Semaphore(MOST, fast_acquire=True)

    async def exchange(self, *commands: Command) -> list[Any]:
        """The answers to some commands; raises what Redis raises, and `Unavailable` when it does not answer."""
        async with self._slots:
            connection = await self._ready()
            answers = await self._answers(connection, commands)
            self._idle.append(connection)
        return [_checked(answer) for answer in answers]

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[Exchange]:
        """Several exchanges on one connection, and so with one server."""

        async def exchange(*commands: Command) -> list[Any]:
            return [_checked(answer) for answer in await self._answers(connection, commands)]

        async with self._slots:
            connection = await self._ready()
            try:
                yield exchange
            finally:
                if connection.is_connected:
                    self._idle.append(connection)

    async def open(self) -> Connection:
        """A new connection that the caller owns."""
        connection = self._class(
            **self._options, protocol=2, socket_timeout=None, socket_connect_timeout=self._timeouts.connect_s,
            socket_keepalive=True, driver_info=None,
        )  # fmt: skip
        connect: Callable[[], Awaitable[None]] = connection.connect
        try:
            with anyio.fail_after(self._timeouts.connect_s):  # the handshake has no timeout of its own
                await connect()
        except BaseException as error:
            await connection.disconnect(nowait=True)  # answers of the handshake may still arrive
            if isinstance(error, LOST):
                raise lost(error, "nothing") from error
            if isinstance(error, ResponseError):
                raise UsageError(f"Redis does not accept the connection ({error})") from error
            raise
        return connection

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().disconnect()

    async def _answers(self, connection: Connection, commands: Sequence[Command]) -> list[Any]:
        is_whole = False
        try:
            with anyio.fail_after(self._timeouts.answer_s):
                await connection.send_packed_command(connection.pack_commands(commands))
                answers = [await _answer(connection) for _ in commands]
            is_whole = True
        except LOST as error:
            raise lost(error, "unknown") from error
        finally:
            if not is_whole:
                await connection.disconnect(nowait=True)
        return answers

    async def _ready(self) -> Connection:
        """An idle connection that the server has not closed meanwhile, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if not await connection.can_read():
                return connection
            await connection.disconnect(nowait=True)
        return await self.open()


async def _answer(connection: Connection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _checked(answer: Any) -> Any:
    if isinstance(answer, NoScriptError):
        raise answer
    if isinstance(answer, ResponseError):
        raise translate(answer) from answer
    return answer
