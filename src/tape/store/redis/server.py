"""A Redis server, and our scripts on it."""

from typing import Any, TypeAlias

from redis.exceptions import NoScriptError, ResponseError

from tape.core.errors import Unavailable, UsageError
from tape.core.ids import Epoch, GlobalSeq
from tape.store.redis.connection import Connections
from tape.store.redis.data_set import DataSet
from tape.store.redis.scripts import ENTER, LOADED, Script

Argument: TypeAlias = str | bytes | int


class Server:
    """Runs scripts on the data set under one root."""

    def __init__(self, connections: Connections, root: str) -> None:
        self._connections = connections
        self.root = root
        self.data_set = DataSet()

    async def tell(self, script: Script, *arguments: Argument) -> Any:
        """What a script that may write answers."""
        while True:
            try:
                (answer,) = await self._connections.exchange(("EVALSHA", script.sha, 1, self.root, *arguments))
            except NoScriptError:
                await self.enter()
            else:
                return answer

    async def ask(self, script: Script, *arguments: Argument) -> Any:
        """What a script that only reads answers; it is asked again when the answer is lost."""
        try:
            return await self.tell(script, *arguments)
        except Unavailable as error:
            if error.outcome == "nothing":
                raise
        try:
            return await self.tell(script, *arguments)
        except Unavailable as error:
            raise Unavailable(error.reason) from error

    async def enter(self) -> None:
        """Looks at a server that does not know our scripts, and gives them to it.

        A restart forgets scripts, and nobody else gives them: so nobody writes to a restarted server that has not been
        looked at. All of it leaves in one message, so it is one server that hears it.
        """
        is_safe = await self._loses_nothing()
        seen = self.data_set
        enter = ("EVAL", ENTER.text, 1, self.root, int(is_safe), seen.epoch, seen.head)
        loads = [("SCRIPT", "LOAD", script.text) for script in LOADED]
        (epoch, head), *_ = await self._connections.exchange(enter, *loads)
        seen.see(Epoch(int(epoch)), GlobalSeq(int(head)))

    async def _loses_nothing(self) -> bool:
        """Whether what it acknowledged is there after any restart of it: not on a replica that was promoted."""
        (answer,) = await self._connections.exchange(("INFO",))
        facts = dict(line.split(":", 1) for line in answer.decode().splitlines() if ":" in line)
        if facts["maxmemory"] != "0" and facts["maxmemory_policy"] != "noeviction":
            raise UsageError(
                f"this Redis throws keys away when its memory is full (maxmemory-policy {facts['maxmemory_policy']}), "
                "and a journal with them; set it to noeviction"
            )
        was_replica = facts.get("master_replid2", "").strip("0") != ""
        return facts["aof_enabled"] == "1" and not was_replica and await self._syncs_always()

    async def _syncs_always(self) -> bool:
        try:
            ((_, value),) = await self._connections.exchange(("CONFIG", "GET", "appendfsync"))
        except (ResponseError, ValueError):
            return False  # who may not ask must expect the worst; a server that is just down is asked again
        return bool(value == b"always")
