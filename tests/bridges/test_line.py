"""The line to a peer that is away: messages wait, attempts are not used up, and leaving is always possible."""

import logging
from collections.abc import Callable

import anyio
import pytest

from tape.bridges.opening import lines_of
from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.matcher.dispatcher import Crew, Dispatcher
from tests.bridges.bridging import bridging, ended, is_noted, react, say, until
from tests.bridges.sides import SECRET
from tests.patience import PATIENCE_S
from tests.servers.listening import WebhookServer
from tests.servers.process import free_port

NOBODY: dict[str, tuple[str, Callable[[int], dict[str, object]]]] = {
    "redis-stream": ("redis-stream://orders", lambda port: {"url": f"redis://127.0.0.1:{port}/0"}),
    "nats": ("nats://orders", lambda port: {"url": f"nats://127.0.0.1:{port}"}),
    "kafka": ("kafka://orders", lambda port: {"servers": f"127.0.0.1:{port}"}),
    "pubsub": ("pubsub://shop/orders", lambda port: {"emulator": f"127.0.0.1:{port}"}),
    "billing": (
        "webhook://billing",
        lambda port: {"url": f"http://127.0.0.1:{port}/", "secret": SECRET, "allow": ["127.0.0.1/32"]},
    ),
}


@pytest.mark.parametrize("name", NOBODY)
async def test_a_worker_that_leaves_while_its_peer_is_away_uses_up_no_attempt(
    name: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    target, settings = NOBODY[name]
    line = lines_of({name: {"deadline_s": 0.5, **settings(free_port())}})[name]
    await react(store, target, retry_backoff_ms=60_000)
    await say(store, 3)

    with anyio.fail_after(PATIENCE_S):
        async with bridging(store, line) as dispatcher:
            await until(lambda: is_noted(caplog))

    found = await store.tasks.listed()
    assert {(task.status, task.attempts, task.last_error) for task in found} == {(TaskStatus.PENDING, 0, "")}
    assert dispatcher.handled == 0


async def test_working_once_waits_for_nobody(store: Store) -> None:
    line = lines_of({"redis-stream": {"url": f"redis://127.0.0.1:{free_port()}/0"}})["redis-stream"]
    await react(store, "redis-stream://orders", retry_backoff_ms=60_000)
    await say(store, 2)

    with anyio.fail_after(PATIENCE_S):
        handled = await Dispatcher(store, Crew(handlers={}, lines=(line,))).run_once()

    found = await store.tasks.listed()
    assert {(task.status, task.attempts) for task in found} == {(TaskStatus.PENDING, 0)} and handled == 0


async def test_a_peer_that_is_away_is_told_of_once_and_so_is_its_return(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tape")
    server = WebhookServer()
    table = {"url": f"http://127.0.0.1:{server.port}/", "secret": SECRET, "allow": ["127.0.0.1/32"]}
    await react(store, "webhook://billing")
    await say(store, 5)

    async with bridging(store, lines_of({"billing": table})["billing"]):
        await until(lambda: is_noted(caplog))
        with server:
            await ended(store, 5)

    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("bridge.")]
    assert told == ["bridge.away", "bridge.back"]


def test_a_peer_whose_library_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tape.bridges.opening.find_spec", lambda _: None)

    with pytest.raises(UsageError, match=r"tape-bus\[nats\]"):
        lines_of({"nats": {}})
