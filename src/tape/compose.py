"""The composition root: rooms are put together here and nowhere else."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from urllib.parse import urlsplit

from tape.bus.append import Appender
from tape.bus.feed import Feed
from tape.bus.journal import Journal
from tape.bus.tail import ENTRIES, Tail
from tape.bus.upkeep import upkeep
from tape.core.background import background
from tape.core.errors import UsageError, shown
from tape.core.ports import Store
from tape.settings import Settings


def open_store(
    url: str, *, unsafe_durability: bool = False, listen_url: str | None = None
) -> AbstractAsyncContextManager[Store]:
    """The store a URL names."""
    match urlsplit(url).scheme:
        case "sqlite" | "memory":
            from tape.store.sqlite.location import Location
            from tape.store.sqlite.store import open_store as open_sqlite

            return open_sqlite(Location.parse(url, unsafe_durability))
        case "postgresql" | "postgres":
            _need("asyncpg", "postgres")
            from tape.store.postgres.store import open_store as open_postgres

            return open_postgres(url, listen_url=listen_url, unsafe_durability=unsafe_durability)
        case "redis" | "rediss":
            _need("redis", "redis")
            from tape.store.redis.location import Location as RedisLocation
            from tape.store.redis.store import open_store as open_redis

            return open_redis(RedisLocation.parse(url))
        case scheme:
            known = "sqlite:///file.db, postgresql://…, redis://… or memory://"
            raise UsageError(f"a store is {known}, not {shown(scheme or url)}")


def _need(driver: str, extra: str) -> None:
    if find_spec(driver) is None:
        raise UsageError(f"this store needs the package {driver}; install tape-bus[{extra}]")


@asynccontextmanager
async def open_journal(url: str | None = None, *, unsafe_durability: bool = False) -> AsyncIterator[Journal]:
    """The journal at a URL, or at TAPE_STORE; what was acknowledged is on disk before it closes."""
    settings = Settings.read(os.environ)
    unsafe_durability = unsafe_durability or settings.unsafe_durability
    opened = open_store(url or settings.store, unsafe_durability=unsafe_durability, listen_url=settings.listen_url)
    async with opened as store, run_journal(store) as journal:
        yield journal


@asynccontextmanager
async def run_journal(store: Store, tail_entries: int = ENTRIES) -> AsyncIterator[Journal]:
    """A journal over a store, with the tasks that move it."""
    tail = Tail((await store.journal.bounds()).head, tail_entries)
    feed = Feed(store, tail)
    appender = Appender(store.journal, feed.take)
    async with background(appender.run, feed.run, partial(upkeep, store)):
        try:
            yield Journal(store, tail, appender)
        finally:
            await appender.drain()
