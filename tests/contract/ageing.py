"""Lets time pass at once: moves all times in the directory of runs into the past."""

from datetime import timedelta
from typing import Final

import redis

from tape.core.ports import Store
from tape.store.redis.location import Location
from tests.contract.backends import Backend

_SQL: Final = """
UPDATE tape_runs SET opened_at = opened_at - :ms, closed_at = closed_at - :ms, renewed_at = renewed_at - :ms
"""
_HEADS_SQL: Final = "UPDATE tape_heads SET opened_at = opened_at - :ms"
_LUA: Final = """
for _, name in ipairs({':open', ':opened', ':closed', ':leases'}) do
  for _, run_id in ipairs(redis.call('ZRANGE', KEYS[1] .. name, 0, -1)) do
    redis.call('ZINCRBY', KEYS[1] .. name, -ARGV[1], run_id)
  end
end
for _, run_id in ipairs(redis.call('ZRANGE', KEYS[1] .. ':runs', 0, -1)) do
  for _, field in ipairs({'opened_at', 'closed_at'}) do
    if redis.call('HEXISTS', KEYS[1] .. ':run:' .. run_id, field) == 1 then
      redis.call('HINCRBY', KEYS[1] .. ':run:' .. run_id, field, -ARGV[1])
    end
  end
end
"""


async def age(backend: Backend, store: Store, by: timedelta) -> None:
    """Moves the times of all runs into the past."""
    ms = by // timedelta(milliseconds=1)
    if backend.name == "redis":
        with redis.Redis.from_url(backend.url) as client:
            client.eval(_LUA, 1, Location.parse(backend.url).root, ms)
        return
    async with store.transaction() as tx:
        await tx.fetch(_SQL, {"ms": ms})
        await tx.fetch(_HEADS_SQL, {"ms": ms})
