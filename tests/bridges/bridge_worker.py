"""Running a bridge in a test: register, publish, wait."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tape.bridges.peer import PeerConnection
from tape.bridges.peers import peer_connections
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import HandlerKind, Reaction
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.handler import handler
from tests.bridges.receivers import SEND_DEADLINE_S, Receiver
from tests.contract.events import append
from tests.deadlines import DEADLINE_S


def connect_to(receiver: Receiver, **settings: object) -> PeerConnection:
    return peer_connections({receiver.name: {"deadline_s": SEND_DEADLINE_S, **receiver.settings, **settings}})[
        receiver.name
    ]


async def register(
    store: Store, target: str, reaction_id: str = "rule", pattern: str = "/a/**", **options: Any
) -> None:
    rule = Reaction(
        reaction_id=reaction_id,
        subject_pattern=pattern,
        handler_kind=HandlerKind.PUBLISH,
        publish_target=target,
        **{"max_concurrency": 100, "retry_backoff_ms": 10, **options},
    )
    await store.reactions.register(rule)


async def publish(
    store: Store, count: int, payload: JsonValue = None, subject: str = "/a/b", run_id: str = "r1"
) -> None:
    events = [Event(run_id=run_id, subject=subject, payload=payload or {"n": n}) for n in range(1, count + 1)]
    await append(store, *events)


@asynccontextmanager
async def running_bridge(
    store: Store, peer: PeerConnection, handlers: Mapping[str, Callable[..., Any]] | None = None
) -> AsyncIterator[Dispatcher]:
    """A dispatcher with a bridge; it runs during the block, then stops and drains."""
    local = {name: handler(function) for name, function in (handlers or {}).items()}
    dispatcher = Dispatcher(store, WorkerConfig(handlers=local, peers=(peer,), owner="me"))
    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.run)
        yield dispatcher
        dispatcher.stop()


async def wait_until(ask: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not await ask():  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(0.02)


async def wait_for_ended(store: Store, count: int) -> None:
    """Waits until `count` tasks are done or dead."""

    async def is_reached() -> bool:
        found = await store.tasks.listed(limit=100_000)
        return sum(task.status.name in ("DONE", "DLQ") for task in found) >= count

    await wait_until(is_reached)


async def is_unavailable_logged(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether a bridge has logged that its peer is unavailable."""
    return any(record.getMessage() == "bridge.unavailable" for record in caplog.records)
