"""A Redis server, and our scripts on it."""

from typing import Any, TypeAlias

from redis.exceptions import NoScriptError, ResponseError

from tape.core.errors import MissingStore, Unavailable, UsageError
from tape.core.ids import Epoch, GlobalSeq
from tape.store.redis.connection import Connections, Exchange
from tape.store.redis.scripts import ENTER, LOADED, Script

Argument: TypeAlias = str | bytes | int


class DataSet:
    """The newest epoch that was observed, and its highest observed head.

    A server can come back empty, or with less than it had. Then an epoch begins, and a cursor of the one before means
    nothing in it.
    """

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.head = GlobalSeq(0)

    @property
    def place(self) -> tuple[Epoch, GlobalSeq]:
        """Every later read must find this or more."""
        return self.epoch, self.head

    def observe(self, epoch: Epoch, head: GlobalSeq) -> None:
        """Remembers the highest epoch and head; answers of two connections may arrive out of order."""
        self.epoch, self.head = max(self.place, (epoch, head))


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


async def loses_nothing(exchange: Exchange) -> bool:
    """Whether acknowledged writes are on the disk of this server; a promoted replica may lack them."""
    (answer,) = await exchange(("INFO",))
    facts = dict(line.split(":", 1) for line in answer.decode().splitlines() if ":" in line)
    if facts["loading"] != "0":
        raise Unavailable("Redis is still loading its data")  # while it loads, it reports that it appends to no file
    if facts["maxmemory"] != "0" and facts["maxmemory_policy"] != "noeviction":
        raise UsageError(
            f"this Redis throws keys away when its memory is full (maxmemory-policy {facts['maxmemory_policy']}), "
            "and a journal with them; set it to noeviction"
        )
    was_replica = facts.get("master_replid2", "").strip("0") != ""
    return facts["aof_enabled"] == "1" and not was_replica and await _syncs_always(exchange)


async def _syncs_always(exchange: Exchange) -> bool:
    """Whether appendfsync is always, also while the file is rewritten."""
    try:
        ((_, always),) = await exchange(("CONFIG", "GET", "appendfsync"))
        ((_, never),) = await exchange(("CONFIG", "GET", "no-appendfsync-on-rewrite"))
    except (ResponseError, ValueError):
        return False  # a role without the right to CONFIG must expect the worst
    return bool(always == b"always" and never == b"no")
