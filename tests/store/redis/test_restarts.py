"""A restarted Redis: its settings before and after decide whether it may have lost entries."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
import redis

from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.core.ids import Epoch
from tape.core.ports import Store
from tape.store.redis.location import Location
from tape.store.redis.store import open_store as open_redis
from tests.contract.backends import LossyWake
from tests.contract.events import append, make_event
from tests.deadlines import DEADLINE_S
from tests.servers.redis_proxy import RedisProxy
from tests.servers.valkey import ValkeyServer
from tests.store.redis.redis_client import restart

MANY = 6 * 1024  # a server that loads looks up every 1,024 commands
SLOW_US = 200


class Holding(RedisProxy):
    """Delays scripts until the server is ready, as if it became ready just before they arrive."""

    async def _ask(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            if b"EVAL\r\n" in data:
                await until_loaded(f"redis://{self._target.netloc}")
            to_server.write(data)


async def test_a_server_that_still_loads_is_not_judged() -> None:
    """Reports that it appends to no file until it has loaded it."""
    with ValkeyServer(settings={"key-load-delay": str(SLOW_US)}) as server:
        before = await filled(server)
        server.kill_hard()
        async with anyio.create_task_group() as tasks, Holding(server.url).open() as proxy:
            tasks.start_soon(anyio.to_thread.run_sync, server.restart)

            found, complaints = await opened(proxy.url)

    assert found == before
    assert any("still loading" in complaint for complaint in complaints)


async def test_a_server_is_given_no_scripts_before_it_is_known_whether_it_has_lost_something() -> None:
    with ValkeyServer(appendfsync="everysec") as server, redis.Redis.from_url(server.url) as client:
        async with open_store(server.url) as store:
            before = (await append(store, make_event(n=1)))[0].epoch
            restart(server)
            client.config_set("maxmemory", 1)
            with pytest.raises(Unavailable, match="maxmemory"):
                await store.journal.bounds()
            client.config_set("maxmemory", 0)

            (entry,) = await append(store, make_event(n=2))

    assert entry.epoch > before


@pytest.mark.parametrize("settings", [{"appendfsync": "everysec"}, {"no-appendfsync-on-rewrite": "yes"}])
async def test_what_a_server_may_have_lost_is_not_forgiven_because_its_settings_are_better_now(
    settings: dict[str, str],
) -> None:
    with ValkeyServer(settings=settings) as server:
        async with appended_to(server) as (store, before):
            server.settings |= {"appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
            restart(server)

            (entry,) = await append(store, make_event(n=2))
            restart(server)
            (next_entry,) = await append(store, make_event(n=3))

    assert before < entry.epoch == next_entry.epoch


async def test_a_server_that_syncs_no_longer_may_have_stopped_before_it_ended() -> None:
    with ValkeyServer() as server:
        async with appended_to(server) as (store, before):
            server.settings |= {"appendfsync": "everysec"}
            restart(server)

            (entry,) = await append(store, make_event(n=2))

    assert entry.epoch > before


async def test_a_server_that_does_not_sync_while_it_rewrites_may_have_lost_something() -> None:
    with ValkeyServer(settings={"no-appendfsync-on-rewrite": "yes"}) as server:
        async with appended_to(server) as (store, before):
            restart(server)

            (entry,) = await append(store, make_event(n=2))

    assert entry.epoch > before


@asynccontextmanager
async def appended_to(server: ValkeyServer) -> AsyncIterator[tuple[Store, Epoch]]:
    async with open_store(server.url) as store:
        (entry,) = await append(store, make_event(n=1))
        yield store, entry.epoch


async def filled(server: ValkeyServer) -> Epoch:
    """The epoch of a journal on a server that has much other data to load."""
    with redis.Redis.from_url(server.url) as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(MANY):
            pipeline.set("other", number)
        pipeline.execute()
    async with open_store(server.url) as store:
        await append(store, make_event(n=1))
        return store.epoch


async def opened(url: str) -> tuple[Epoch, list[str]]:
    """The epoch in which the store opens at last, and the errors before."""
    complaints: list[str] = []
    with anyio.fail_after(DEADLINE_S):
        while True:
            try:
                async with open_redis(Location.parse(url), LossyWake()) as store:
                    return store.epoch, complaints
            except Unavailable as error:
                complaints.append(error.reason)
                await anyio.sleep(0.001)


async def until_loaded(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        while client.info("persistence")["loading"]:  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(0.001)
