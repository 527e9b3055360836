"""The stores under the contract tests, and the features of each."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
import redis

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.ids import GlobalSeq
from tape.core.ports import Store, Wake
from tape.store.postgres.store import open_store as open_postgres
from tape.store.redis.location import Location as RedisLocation
from tape.store.redis.store import open_store as open_redis
from tape.store.sqlite.location import Location
from tape.store.sqlite.store import open_store as open_sqlite


class LossyWake:
    """Loses every notification."""

    async def notify(self, head: GlobalSeq) -> None:
        return

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        await anyio.sleep_forever()


@dataclass(frozen=True, slots=True)
class Backend:
    """A store under test: its URL, whether it outlives its process, and whether a run keeps only its newest entries."""

    name: str
    url: str
    is_durable: bool = True
    is_bounded: bool = False

    @property
    def has_ledgers(self) -> bool:
        """Cells, and with them transactions and an audit."""
        return self.name in WITH_LEDGERS

    def open(self) -> AbstractAsyncContextManager[Store]:
        return open_store(self.url)

    @asynccontextmanager
    async def open_empty(self) -> AsyncIterator[Store]:
        """Opens the store after its data was deleted."""
        for leftover in self.files():
            leftover.unlink()
        if self.name == "redis":
            with redis.Redis.from_url(self.url) as client:
                client.flushdb()
        async with self.open() as store:
            if self.name == "postgres":
                async with store.transaction() as tx:
                    await tx.lock()
                    for table in ("journal", "heads", "keys", "cells", "runs"):  # new files would cost more than rows
                        await tx.fetch(f"DELETE FROM tape_{table}", {})
            yield store

    def files(self) -> list[Path]:
        path = Path(self.url.removeprefix("sqlite:///"))
        return [file for file in path.parent.glob(f"{path.name}*") if file.is_file()] if self.name == "sqlite" else []

    def open_with(self, wake: Wake) -> AbstractAsyncContextManager[Store]:
        if self.name == "postgres":
            return open_postgres(self.url, wake=wake)
        if self.name == "redis":
            return open_redis(RedisLocation.parse(self.url), wake)
        return open_sqlite(Location.parse(self.url), wake)

    @asynccontextmanager
    async def two_nodes(self, wake: Wake | None = None) -> AsyncIterator[tuple[Journal, Journal]]:
        """Two journals over the same data; where the data cannot be shared, over the same store."""
        async with self._node(wake) as first, run_journal(first) as one:
            if not self.is_durable:
                async with run_journal(first) as other:
                    yield one, other
                return
            async with self._node(wake) as second, run_journal(second) as other:
                yield one, other

    def _node(self, wake: Wake | None) -> AbstractAsyncContextManager[Store]:
        return self.open() if wake is None else self.open_with(wake)


NAMES = ("memory", "sqlite", "postgres", "redis")
WITH_LEDGERS = ("memory", "sqlite", "postgres")

# A test with one of these marks runs on the stores that have a feature, or on those that lack it.
needs_ledgers = pytest.mark.parametrize("backend", WITH_LEDGERS, indirect=True)
on_disk = pytest.mark.parametrize("backend", ["sqlite", "postgres"], indirect=True)
without_ledgers = pytest.mark.parametrize("backend", sorted({*NAMES} - {*WITH_LEDGERS}), indirect=True)


def backend(name: str, folder: Path) -> Backend:
    if name == "memory":
        return Backend(name, "memory://", is_durable=False, is_bounded=True)
    return Backend(name, f"sqlite:///{folder / 'tape.db'}")
