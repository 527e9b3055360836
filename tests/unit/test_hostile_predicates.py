"""P19: what was built to hang or to explode slows no other reaction by a second."""

import time
from collections.abc import AsyncIterator

import anyio
import pytest

from tape.compose import open_store
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.ports import Store
from tape.matcher.matcher import Matcher
from tests.contract.reacting import reaction, sources
from tests.contract.saying import append
from tests.patience import PATIENCE_S

HOSTILE = [
    "payload.xs.all(x, x >= 0)",
    "payload.xs.exists(x, x == -1)",
    "payload == payload.ys",
    "payload.xs == payload.ys",
    "-1 in payload.xs",
    "payload.s.matches('(a+)+$')",
    "payload.s.matches('(.*)(.*)(.*)(.*)(.*)x')",
    "payload.s.contains('aaaaaaaaaaaaaaaaaaaaab')",
]
LIMIT_S = 1.0


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


def heavy(number: int) -> Event:
    numbers: list[JsonValue] = list(range(60_000))
    payload: dict[str, JsonValue] = {"n": number, "xs": numbers, "ys": numbers[:-1], "s": "a" * 200_000}
    return Event(run_id="r1", payload=payload, subject="/heavy/entry")


async def test_p19_hostile_predicates_delay_nobody_else_by_a_second(store: Store) -> None:
    for number, predicate in enumerate(HOSTILE):
        await store.reactions.register(reaction(f"hostile{number}", "/heavy/**", predicate_cel=predicate))
    await store.reactions.register(reaction("plain", "/light/**"))
    delays = []

    async with anyio.create_task_group() as group:
        group.start_soon(Matcher(store).run)
        with anyio.fail_after(PATIENCE_S):
            for number in range(5):
                await append(store, *(heavy(number) for _ in range(2)))
                began = time.perf_counter()
                await append(store, Event(run_id="r1", payload=number, subject="/light/entry"))
                await made(store, number + 1)
                delays.append(time.perf_counter() - began)
        group.cancel_scope.cancel()

    print(f"the longest delay was {max(delays):.3f} s")
    assert max(delays) < LIMIT_S


async def made(store: Store, count: int) -> None:
    """When so many tasks of the plain reaction are there."""
    while True:
        if len(await sources(store, "plain")) >= count:
            return
        await anyio.sleep(0.005)
