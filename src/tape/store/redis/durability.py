"""Whether what a Redis server acknowledges is there after any restart of it."""

from redis.exceptions import ResponseError

from tape.core.errors import Unavailable, UsageError
from tape.store.redis.connection import Exchange


async def loses_nothing(exchange: Exchange) -> bool:
    """Whether what it acknowledged is on its disk; not on a replica that was promoted."""
    (answer,) = await exchange(("INFO",))
    facts = dict(line.split(":", 1) for line in answer.decode().splitlines() if ":" in line)
    if facts["loading"] != "0":
        raise Unavailable("Redis is still loading its data")  # and says meanwhile that it appends to no file
    if facts["maxmemory"] != "0" and facts["maxmemory_policy"] != "noeviction":
        raise UsageError(
            f"this Redis throws keys away when its memory is full (maxmemory-policy {facts['maxmemory_policy']}), "
            "and a journal with them; set it to noeviction"
        )
    was_replica = facts.get("master_replid2", "").strip("0") != ""
    return facts["aof_enabled"] == "1" and not was_replica and await _syncs_always(exchange)


async def _syncs_always(exchange: Exchange) -> bool:
    """Also while it rewrites its file."""
    try:
        ((_, always),) = await exchange(("CONFIG", "GET", "appendfsync"))
        ((_, never),) = await exchange(("CONFIG", "GET", "no-appendfsync-on-rewrite"))
    except (ResponseError, ValueError):
        return False  # who may not ask must expect the worst; a server that is just down is asked again
    return bool(always == b"always" and never == b"no")
