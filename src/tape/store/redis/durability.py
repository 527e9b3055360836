"""Whether acknowledged writes survive a restart of a Redis server."""

from redis.exceptions import ResponseError

from tape.core.errors import Unavailable, UsageError
from tape.store.redis.connection import Exchange


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
