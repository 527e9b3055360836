"""Wakes the readers of a journal on Redis: messages are hints, and a poll never relies on them."""

from contextlib import suppress
from typing import Final, NoReturn

import anyio
from redis.asyncio.connection import Connection
from redis.exceptions import ResponseError

from tape.core.errors import Unavailable
from tape.core.ids import GlobalSeq
from tape.store.hints import UNKNOWN, Hints, head_of
from tape.store.redis.connection import Connections
from tape.store.redis.errors import LOST
from tape.store.timeouts import Timeouts

SHORTEST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


class JournalWake:
    """Subscribes to one channel; `is_listening` tells whether silence means that nothing was appended."""

    def __init__(self, connections: Connections, root: str, timeouts: Timeouts) -> None:
        self._connections = connections
        self._timeouts = timeouts
        self._channel = f"{root}:grown"
        self._hints = Hints()
        self.is_listening = False

    async def notify(self, head: GlobalSeq) -> None:
        return  # the script that appends publishes

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        await self._hints.wait_beyond(cursor)

    async def run(self) -> NoReturn:
        pause = SHORTEST_PAUSE_S
        while True:
            with suppress(Unavailable):
                connection = await self._connections.open()
                pause = SHORTEST_PAUSE_S
                await self._listen(connection)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _listen(self, connection: Connection) -> None:
        """Returns when the connection is lost or half open."""
        try:
            await connection.send_command("SUBSCRIBE", self._channel)
            while (message := await self._next(connection)) is not None:
                self._on_message(*message)
        except (*LOST, ResponseError):
            return
        finally:
            self.is_listening = False
            self._hints.add(UNKNOWN)
            await connection.disconnect(nowait=True)

    async def _next(self, connection: Connection) -> list[bytes] | None:
        """The next message; None when not even a PING is answered."""
        message = await connection.read_response(timeout=self._timeouts.keep_alive_s)
        if message is None:
            await connection.send_command("PING")
            message = await connection.read_response(timeout=self._timeouts.echo_s)
        return message  # type: ignore[no-any-return]

    def _on_message(self, kind: bytes, channel: bytes, *content: bytes) -> None:
        if kind == b"subscribe":
            self.is_listening = True
            self._hints.add(UNKNOWN)  # entries from before it listened are found by reading
        elif kind == b"message":
            self._hints.add(head_of(b"".join(content).decode(errors="replace")))
