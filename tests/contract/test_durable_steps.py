"""Steps of a durable function follow one another: one that begins beside another is refused, and nothing is undone."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import tape
from tape.core.effect import DispatchMode, EffectStatus
from tape.core.run_state import RunState, RunStatus
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.nouns.node import AsyncNode
from tape.work.jobs import job_worker
from tests.contract.backends import on_disk
from tests.contract.ledgers import begin_run
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

MADE: list[str] = []
UNDONE: list[object] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    MADE.clear()
    UNDONE.clear()


def cancel(result: object, item: str) -> None:
    UNDONE.append(item)


@tape.effect(compensate=cancel)
async def order(item: str) -> str:
    MADE.append(item)
    return f"{item} ordered"


@tape.effect(compensate=cancel)
async def order_both(*items: str) -> object:
    await tape.now()
    return await asyncio.gather(order(items[0]), order(items[1]))  # noqa: TID251 - it is what users write


@tape.effect(dispatch=DispatchMode.OUTBOX, connector="nobody")
async def deliver(item: str) -> None:
    raise AssertionError("others do it")


async def reserved() -> None:
    async with tape.reserve(usd=1):
        await anyio.lowlevel.checkpoint()


async def live(node: AsyncNode, function: Callable[[RunState], Any], run_id: str = "") -> RunState:
    found = run_id or (await begin_run(node, owner="w1")).run_id
    with anyio.fail_after(DEADLINE_S):
        return await AgentJob(node, None, function, owner="w1").resume(found)


TOGETHER: dict[str, Callable[[], list[Awaitable[Any]]]] = {
    "two effects": lambda: [order("tea"), order("milk")],
    "an effect and a sample": lambda: [order("tea"), tape.now()],
    "two samples": lambda: [tape.uuid(), tape.random()],
    "a decision and an effect": lambda: [tape.decide(lambda: 1), order("tea")],
    "an effect and a gate": lambda: [order("tea"), tape.gate("approval")],
    "two reservations": lambda: [reserved(), reserved()],
    "an effect of others": lambda: [deliver("tea"), order("milk")],
    "steps within a step": lambda: [order_both("tea", "milk")],
}


@pytest.mark.parametrize("steps", TOGETHER.values(), ids=TOGETHER)
async def test_a_step_that_begins_beside_another_is_refused_in_the_first_execution(
    node: AsyncNode, steps: Callable[[], list[Awaitable[Any]]]
) -> None:
    refused: list[BaseException] = []

    async def shop(run: RunState) -> None:
        await order("bread")
        answers = await asyncio.gather(*steps(), return_exceptions=True)  # noqa: TID251 - it is what users write
        refused.extend(each for each in answers if isinstance(each, tape.UsageError))
        await order("one more thing")

    left = await live(node, shop)

    assert [str(each) for each in refused] and all("under way in another task" in str(each) for each in refused)
    assert left.is_active and "one more thing" not in MADE
    assert await job_worker(CompensationJob(node, owner="d1")).run_once() == 0 and UNDONE == []


async def gathering() -> None:
    await asyncio.gather(order("tea"), order("milk"))  # noqa: TID251 - it is what users write


async def in_a_task_group() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(order("tea"))
        tasks.create_task(order("milk"))


def in_threads() -> None:
    threads = [Thread(target=partial(copy_context().run, order, item)) for item in ("tea", "milk")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("both", [gathering, in_a_task_group, in_threads])
async def test_a_refused_step_leaves_its_run_to_a_program_without_the_fault(
    node: AsyncNode, both: Callable[[], Any]
) -> None:
    async def first(run: RunState) -> object:
        return await order("bread"), await both()

    def first_in_a_thread(run: RunState) -> object:
        return order("bread"), both()

    async def mended(run: RunState) -> object:
        return [await order("bread"), await order("tea"), await order("milk")]

    left = await live(node, first_in_a_thread if both is in_threads else first)
    ended = await live(node, mended, left.run_id)

    assert (left.status, left.claim.owner, ended.status) == (RunStatus.RUNNING, "w1", RunStatus.TERMINAL)
    assert ended.detail_json == '["bread ordered","tea ordered","milk ordered"]'
    assert MADE == ["bread", "tea", "milk"] and UNDONE == []


async def test_a_step_that_is_under_way_when_another_is_refused_is_done_once(node: AsyncNode) -> None:
    may_end, was_refused = anyio.Event(), anyio.Event()

    @tape.effect()
    async def slow() -> str:
        MADE.append("slow")
        await may_end.wait()
        return "done"

    async def both(run: RunState) -> None:
        try:
            await asyncio.gather(slow(), order("tea"))  # noqa: TID251 - it is what users write
        finally:
            was_refused.set()

    run_id = (await begin_run(node, owner="w1")).run_id
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live, node, both, run_id)
            await was_refused.wait()
            may_end.set()

    (effect,) = await node.effects.list_all(run_id)
    assert (effect.status, effect.response_json, MADE) == (EffectStatus.CONFIRMED, '"done"', ["slow"])


async def test_steps_may_be_begun_within_a_step_and_by_tasks_one_after_the_other(node: AsyncNode) -> None:
    @tape.effect()
    async def nested() -> object:
        return [await order("tea"), await tape.sample("n", lambda: 1)]

    async def shop(run: RunState) -> object:
        answers: list[object] = []

        async def one() -> None:
            async with tape.reserve(usd=1):
                answers.append(await nested())

        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one)
        return answers

    ended = await live(node, shop)

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, '[["tea ordered",1],["tea ordered",1]]')


async def test_a_plain_function_may_take_steps_within_a_step(node: AsyncNode) -> None:
    @tape.effect()
    def nested() -> object:
        with tape.reserve(tokens=1):
            return [order("tea"), tape.sample("n", lambda: 1)]

    def shop(run: RunState) -> object:
        with tape.reserve(usd=1):
            return [nested(), order("milk")]

    ended = await live(node, shop)

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, '[["tea ordered",1],"milk ordered"]')
