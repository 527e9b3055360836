"""A Redis that takes nothing for a while has refused no message: it is waited for."""

from collections.abc import Callable, Iterator

import anyio
import pytest
from redis import Redis

from tape.bridges.message import Message
from tape.bridges.target import Target
from tests.bridges.bridging import is_noted, line, until
from tests.bridges.sides import RedisSide
from tests.patience import PATIENCE_S
from tests.servers.valkey import ValkeyServer

MESSAGE = Message(key="k1", order="r1", body=b"{}", facts={"tape-run-id": "r1"})

Change = Callable[[Redis], object]
TROUBLES: dict[str, tuple[Change, Change]] = {
    "no memory": (lambda redis: redis.config_set("maxmemory", "1"), lambda redis: redis.config_set("maxmemory", "0")),
    "a replica": (lambda redis: redis.replicaof("127.0.0.1", "1"), lambda redis: redis.replicaof("NO", "ONE")),
    "no replicas": (
        lambda redis: redis.config_set("min-replicas-to-write", "1"),
        lambda redis: redis.config_set("min-replicas-to-write", "0"),
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """One that nobody else uses: having been a replica stays with a server."""
    with ValkeyServer() as server:
        yield server


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_server_that_takes_no_writes_now_is_waited_for(
    trouble: str, server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    side, (begin, end) = RedisSide(server), TROUBLES[trouble]
    once = line(side)

    with Redis.from_url(server.url) as redis, anyio.fail_after(PATIENCE_S):
        begin(redis)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(once.send, Target.parse(side.target).topic, MESSAGE)
                await until(lambda: is_noted(caplog))
                end(redis)
        finally:
            end(redis)

    await once.close()
    assert [each.key for each in await side.received()] == ["k1"]
