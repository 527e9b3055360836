"""Connections to one Redis server."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
from redis.asyncio.connection import Connection, parse_url
from redis.exceptions import NoScriptError, ResponseError

from tape.core.errors import UsageError
from tape.store.redis.errors import LOST, lost, translate

MOST: Final = 16
CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0


class Connections:
    """A few connections, each of which has one exchange at a time.

    One that has not heard the end of its exchange, because it was cancelled or lost, still has an answer to come
    that belongs to nobody: it is closed and never used again.
    """

    def __init__(self, url: str) -> None:
        self._options: dict[str, Any] = {**parse_url(url)}
        self._class: type[Connection] = self._options.pop("connection_class", Connection)
        self._idle: list[Connection] = []
        self._turns = anyio.Semaphore(MOST, fast_acquire=True)

    async def exchange(self, *commands: Sequence[str | bytes | int]) -> list[Any]:
        """The answers to some commands; raises what Redis raises, and `Unavailable` when it does not answer."""
        async with self._turns:
            connection, is_whole = await self._ready(), False
            try:
                with anyio.fail_after(ANSWER_S):
                    await connection.send_packed_command(connection.pack_commands(commands))
                    answers = [await _answer(connection) for _ in commands]
                is_whole = True
            except LOST as error:
                raise lost(error, "unknown") from error
            finally:
                await self._leave(connection, is_whole)
        return [_checked(answer) for answer in answers]

    async def open(self) -> Connection:
        """A connection of its own for who asks; nothing has been said on it."""
        connection = self._class(
            **self._options, protocol=2, socket_timeout=None, socket_connect_timeout=CONNECT_S,
            socket_keepalive=True, driver_info=None,
        )  # fmt: skip
        connect: Callable[[], Awaitable[None]] = connection.connect
        try:
            await connect()
        except LOST as error:
            raise lost(error, "nothing") from error
        except ResponseError as error:
            raise UsageError(f"Redis does not accept the connection ({error})") from error
        except BaseException:
            await connection.disconnect(nowait=True)  # the answers to its greeting may still come
            raise
        return connection

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().disconnect()

    async def _leave(self, connection: Connection, is_whole: bool) -> None:
        if is_whole:
            self._idle.append(connection)
        else:
            await connection.disconnect(nowait=True)

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
