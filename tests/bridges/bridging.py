"""Short ways to say what bridges are about."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tape.bridges.line import Line
from tape.bridges.opening import lines_of
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import HandlerKind, Reaction
from tape.matcher.dispatcher import Crew, Dispatcher
from tape.work.handler import handler
from tests.bridges.sides import DEADLINE_S, Side
from tests.contract.saying import append
from tests.patience import PATIENCE_S


def line(side: Side, **settings: object) -> Line:
    return lines_of({side.name: {"deadline_s": DEADLINE_S, **side.settings, **settings}})[side.name]


async def react(store: Store, target: str, reaction_id: str = "rule", pattern: str = "/a/**", **options: Any) -> None:
    said = {"max_concurrency": 100, "retry_backoff_ms": 10, **options}
    rule = Reaction(
        reaction_id=reaction_id,
        subject_pattern=pattern,
        handler_kind=HandlerKind.PUBLISH,
        publish_target=target,
        **said,
    )
    await store.reactions.register(rule)


async def say(store: Store, count: int, payload: JsonValue = None, subject: str = "/a/b", run_id: str = "r1") -> None:
    said = [Event(run_id=run_id, subject=subject, payload=payload or {"n": n}) for n in range(1, count + 1)]
    await append(store, *said)


@asynccontextmanager
async def bridging(
    store: Store, line: Line, handlers: Mapping[str, Callable[..., Any]] | None = None
) -> AsyncIterator[Dispatcher]:
    """A dispatcher with a bridge that runs as long as the block, and is then stopped and drained."""
    local = {name: handler(function) for name, function in (handlers or {}).items()}
    dispatcher = Dispatcher(store, Crew(handlers=local, lines=(line,), owner="me"))
    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.run)
        yield dispatcher
        dispatcher.stop()


async def until(ask: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not await ask():  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(0.02)


async def ended(store: Store, count: int) -> None:
    """Until so many tasks are done or dead."""

    async def is_so() -> bool:
        found = await store.tasks.listed(limit=100_000)
        return sum(task.status.name in ("DONE", "DLQ") for task in found) >= count

    await until(is_so)


async def is_noted(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether a bridge has said that its peer is away."""
    return any(record.getMessage() == "bridge.away" for record in caplog.records)
