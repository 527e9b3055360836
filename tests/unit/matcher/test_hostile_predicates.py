"""P19: a predicate that was built to hang or to explode delays no other reaction by a second."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tape.compose import open_store
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.ports import Store
from tape.matcher.matcher import Matcher
from tests.contract.events import append
from tests.contract.reactions import reaction, sources
from tests.deadlines import DEADLINE_S

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


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


def heavy(number: int) -> Event:
    numbers: list[JsonValue] = list(range(60_000))
    payload: dict[str, JsonValue] = {"n": number, "xs": numbers, "ys": numbers[:-1], "s": "a" * 200_000}
    return Event(run_id="r1", payload=payload, subject="/heavy/entry")


async def test_p19_hostile_predicates_do_not_delay_others(store: Store) -> None:
    for number, predicate in enumerate(HOSTILE):
        await store.reactions.register(reaction(f"hostile{number}", "/heavy/**", predicate_cel=predicate))
    await store.reactions.register(reaction("plain", "/light/**"))

    async with anyio.create_task_group() as group:
        group.start_soon(Matcher(store).run)
        with anyio.fail_after(DEADLINE_S):
            for number in range(5):
                await append(store, *(heavy(number) for _ in range(2)))
                await append(store, Event(run_id="r1", payload=number, subject="/light/entry"))
                await made(store, number + 1)
        group.cancel_scope.cancel()

    assert len(await sources(store, "plain")) == 5


async def made(store: Store, count: int) -> None:
    """Returns when the plain reaction has that many tasks."""
    while True:
        if len(await sources(store, "plain")) >= count:
            return
        await anyio.sleep(0.005)
