"""A peer that is unavailable: messages wait, no attempt is counted, and the worker can always stop."""

import logging
from collections.abc import Callable

import anyio
import pytest

from tape.bridges.peers import peer_connections
from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tests.bridges.bridge_worker import (
    is_unavailable_logged,
    publish,
    register,
    running_bridge,
    wait_for_ended,
    wait_until,
)
from tests.bridges.receivers import SECRET
from tests.deadlines import DEADLINE_S
from tests.servers.listening import WebhookServer
from tests.servers.process import free_port

UNREACHABLE: dict[str, tuple[str, Callable[[int], dict[str, object]]]] = {
    "redis-stream": ("redis-stream://orders", lambda port: {"url": f"redis://127.0.0.1:{port}/0"}),
    "nats": ("nats://orders", lambda port: {"url": f"nats://127.0.0.1:{port}"}),
    "kafka": ("kafka://orders", lambda port: {"servers": f"127.0.0.1:{port}"}),
    "pubsub": ("pubsub://shop/orders", lambda port: {"emulator": f"127.0.0.1:{port}"}),
    "billing": (
        "webhook://billing",
        lambda port: {"url": f"http://127.0.0.1:{port}/", "secret": SECRET, "allow": ["127.0.0.1/32"]},
    ),
}


@pytest.mark.parametrize("name", UNREACHABLE)
async def test_a_worker_that_stops_while_its_peer_is_unavailable_counts_no_attempt(
    name: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    target, settings = UNREACHABLE[name]
    peer = peer_connections({name: {"deadline_s": 0.5, **settings(free_port())}})[name]
    await register(store, target, retry_backoff_ms=60_000)
    await publish(store, 3)

    with anyio.fail_after(DEADLINE_S):
        async with running_bridge(store, peer) as dispatcher:
            await wait_until(lambda: is_unavailable_logged(caplog))

    found = await store.tasks.listed()
    assert {(task.status, task.attempts, task.last_error) for task in found} == {(TaskStatus.PENDING, 0, "")}
    assert dispatcher.handled == 0


async def test_working_once_does_not_wait_for_an_unavailable_peer(store: Store) -> None:
    peer = peer_connections({"redis-stream": {"url": f"redis://127.0.0.1:{free_port()}/0"}})["redis-stream"]
    await register(store, "redis-stream://orders", retry_backoff_ms=60_000)
    await publish(store, 2)

    with anyio.fail_after(DEADLINE_S):
        handled = await Dispatcher(store, WorkerConfig(handlers={}, peers=(peer,))).run_once()

    found = await store.tasks.listed()
    assert {(task.status, task.attempts) for task in found} == {(TaskStatus.PENDING, 0)} and handled == 0


async def test_an_unavailable_peer_is_logged_once_and_so_is_its_recovery(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tape")
    server = WebhookServer()
    table = {"url": f"http://127.0.0.1:{server.port}/", "secret": SECRET, "allow": ["127.0.0.1/32"]}
    await register(store, "webhook://billing")
    await publish(store, 5)

    async with running_bridge(store, peer_connections({"billing": table})["billing"]):
        await wait_until(lambda: is_unavailable_logged(caplog))
        with server:
            await wait_for_ended(store, 5)

    logged = [record.getMessage() for record in caplog.records if record.getMessage().startswith("bridge.")]
    assert logged == ["bridge.unavailable", "bridge.recovered"]


def test_the_error_for_a_missing_library_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tape.bridges.peers.find_spec", lambda _: None)

    with pytest.raises(UsageError, match=r"tape-bus\[nats\]"):
        peer_connections({"nats": {}})
