"""A Redis server, and our scripts on it."""

from typing import Any, TypeAlias

from redis.exceptions import NoScriptError

from tape.core.errors import MissingStore, Unavailable
from tape.core.ids import Epoch, GlobalSeq
from tape.store.redis.connection import Connections, Exchange
from tape.store.redis.data_set import DataSet
from tape.store.redis.durability import loses_nothing
from tape.store.redis.scripts import ENTER, LOADED, Script

Argument: TypeAlias = str | bytes | int


class Server:
    """Runs scripts on the data set under one root."""

    def __init__(self, connections: Connections, root: str) -> None:
        self._connections = connections
        self.root = root
        self.data_set = DataSet()

    async def run(self, script: Script, *arguments: Argument) -> Any:
        """The result of a script that may write."""
        while True:
            try:
                (answer,) = await self._connections.exchange(("EVALSHA", script.sha, 1, self.root, *arguments))
            except NoScriptError:
                await self.enter()
            else:
                return answer

    async def ask(self, script: Script, *arguments: Argument) -> Any:
        """The result of a script that only reads; it is repeated when the answer is lost."""
        try:
            return await self.run(script, *arguments)
        except Unavailable as error:
            if error.outcome == "nothing":
                raise
        try:
            return await self.run(script, *arguments)
        except Unavailable as error:
            raise Unavailable(error.reason) from error

    async def check_exists(self) -> None:
        """Raises MissingStore if there is no journal under the root."""
        (is_there,) = await self._connections.exchange(("EXISTS", f"{self.root}:journal"))
        if not is_there:
            raise MissingStore(f"under the prefix {self.root[1:-1]!r} of this Redis database")

    async def enter(self) -> None:
        """Checks a server that does not know our scripts, and loads them.

        A restart forgets scripts, so nobody writes to a restarted server before it was checked. All commands go over
        one connection, and so to one server.
        """
        try:
            async with self._connections.conversation() as exchange:
                await self._enter(exchange)
        except Unavailable as error:
            raise Unavailable(error.reason) from error  # the script itself was not sent

    async def _enter(self, exchange: Exchange) -> None:
        is_safe, seen = await loses_nothing(exchange), self.data_set
        ((epoch, head),) = await exchange(("EVAL", ENTER.text, 1, self.root, int(is_safe), seen.epoch, seen.head))
        await exchange(*(("SCRIPT", "LOAD", script.text) for script in LOADED))
        seen.observe(Epoch(int(epoch)), GlobalSeq(int(head)))
