"""Helpers of the tests of ledgers and durable functions."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TypeVar

import anyio
import pytest

from tape.bus.journal import Journal
from tape.compose import ledgers_of, run_journal
from tape.core.effect import DispatchMode, Effect, Semantics
from tape.core.event import Entry
from tape.core.run_state import RunState
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend
from tests.contract.events import drain
from tests.contract.serving import reached
from tests.deadlines import DEADLINE_S

T = TypeVar("T")

far_or_not = pytest.mark.parametrize("far", [True, False], ids=["one far away", "both embedded"])


async def begin_run(node: AsyncNode, name: str = "1", owner: str = "worker", *scopes: str) -> RunState:
    begun = await node.runs.begin("treasury", "ann", "s", name, owner=owner, scopes=scopes)
    return begun.run


async def queue_effect(node: AsyncNode, semantics: Semantics = Semantics.IDEMPOTENT, name: str = "1") -> Effect:
    """An effect in the outbox, in a new run."""
    run = await begin_run(node, name, "worker", "payments")
    mode, scope = DispatchMode.OUTBOX, "payments"
    return await node.effects.begin(
        run.run_id, "wire", 7, semantics=semantics, dispatch_mode=mode, scope=scope, connector="bank"
    )


async def all_entries(journal: Journal) -> list[Entry]:
    return await drain(journal.stream(follow=False))


async def subjects(journal: Journal) -> list[str]:
    return [entry.subject for entry in await all_entries(journal)]


async def kinds(journal: Journal) -> Counter[str]:
    return Counter(entry.kind for entry in await all_entries(journal))


async def until(ask: Callable[[], Awaitable[T]], is_enough: Callable[[T], bool]) -> T:
    """Calls `ask` until the answer is accepted."""
    with anyio.fail_after(DEADLINE_S):
        while not is_enough(answer := await ask()):  # noqa: ASYNC110 - only asking can tell
            await anyio.sleep(0.02)
    return answer


@asynccontextmanager
async def two_nodes(backend: Backend, *, far: bool = True) -> AsyncIterator[tuple[AsyncNode, AsyncNode]]:
    """Two clients over the same data, each with its own store if the backend can be shared; one may be remote."""
    async with (
        backend.open() as first,
        run_journal(first) as one,
        backend.open() if backend.is_durable else nullcontext(first) as second,
        run_journal(second) as other,
        reached(second, other) if far else nullcontext(AsyncNode(ledgers_of(second, other))) as node,
    ):
        yield AsyncNode(ledgers_of(first, one)), node


async def concurrently(count: int, work: Callable[[int], Awaitable[T]]) -> list[T]:
    """The results of that many concurrent calls."""
    answers: dict[int, T] = {}

    async def one(number: int) -> None:
        answers[number] = await work(number)

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(one, number)
    return [answers[number] for number in range(count)]
