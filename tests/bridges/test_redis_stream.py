"""A Redis that accepts no writes for a while has rejected no message: the bridge waits for it."""

from collections.abc import Callable, Iterator

import anyio
import pytest
from redis import Redis

from tape.bridges.message import Message
from tape.bridges.target import Target
from tests.bridges.bridge_worker import connect_to, is_unavailable_logged, wait_until
from tests.bridges.receivers import RedisReceiver
from tests.deadlines import DEADLINE_S
from tests.servers.valkey import ValkeyServer

MESSAGE = Message(key="k1", order="r1", body=b"{}", extra_headers={"tape-run-id": "r1"})

Change = Callable[[Redis], object]
CONDITIONS: dict[str, tuple[Change, Change]] = {
    "no memory": (lambda redis: redis.config_set("maxmemory", "1"), lambda redis: redis.config_set("maxmemory", "0")),
    "a replica": (lambda redis: redis.replicaof("127.0.0.1", "1"), lambda redis: redis.replicaof("NO", "ONE")),
    "no replicas": (
        lambda redis: redis.config_set("min-replicas-to-write", "1"),
        lambda redis: redis.config_set("min-replicas-to-write", "0"),
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A server for this module alone: a server that was a replica stays changed."""
    with ValkeyServer() as server:
        yield server


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_the_bridge_waits_for_a_server_that_accepts_no_writes(
    condition: str, server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    receiver, (begin, end) = RedisReceiver(server), CONDITIONS[condition]
    peer = connect_to(receiver)

    with Redis.from_url(server.url) as redis, anyio.fail_after(DEADLINE_S):
        begin(redis)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(peer.send, Target.parse(receiver.target).topic, MESSAGE)
                await wait_until(lambda: is_unavailable_logged(caplog))
                end(redis)
        finally:
            end(redis)

    await peer.close()
    assert [each.key for each in await receiver.received()] == ["k1"]
