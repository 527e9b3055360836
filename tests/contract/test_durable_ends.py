"""A run ends after its steps: outcomes of steps in progress are recorded before the end of the run."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import tape
from tape.core.effect import DispatchMode, EffectStatus
from tape.core.run_state import RunState, RunStatus
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.nouns.node import AsyncNode
from tape.work.jobs import job_worker
from tests.contract.backends import on_disk
from tests.contract.ledgers import begin_run, until
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

SHORT = timedelta(seconds=1)

UNDONE: list[object] = []


@pytest.fixture(autouse=True)
def nothing_undone() -> None:
    UNDONE.clear()


def recall(result: object, item: str) -> None:
    UNDONE.append(item)


@tape.effect(compensate=recall)
def wire(item: str) -> str:
    return f"{item} sent"


@tape.effect(dispatch=DispatchMode.OUTBOX, connector="nobody", compensate=recall)
async def deliver(item: str) -> None:
    raise AssertionError("others do it")


class Bank:
    """An effect that has left and is not yet acknowledged, until it may be."""

    def __init__(self) -> None:
        self.has_left, self.may_answer = anyio.Event(), anyio.Event()
        self.pay = tape.effect(compensate=recall)(self._pay)

    async def _pay(self, item: str) -> str:
        self.has_left.set()
        await self.may_answer.wait()
        return f"{item} paid"


async def live(node: AsyncNode, function: Callable[[RunState], Any], run_id: str = "") -> RunState:
    found = run_id or (await begin_run(node, owner="w1")).run_id
    with anyio.fail_after(DEADLINE_S):
        return await AgentJob(node, None, function, owner="w1").resume(found)


async def undo(node: AsyncNode) -> list[object]:
    await job_worker(CompensationJob(node, owner="d1")).run_once()
    return UNDONE


async def statuses(node: AsyncNode, run_id: str) -> list[tuple[str, str]]:
    return [(each.tool, each.status.value) for each in await node.effects.list_all(run_id)]


async def outlived(node: AsyncNode, bank: Bank, function: Callable[[RunState], Any]) -> tuple[RunState, RunState]:
    """A run whose function ends while the bank has not answered: before its answer and after it."""
    run_id, is_over = (await begin_run(node, owner="w1")).run_id, anyio.Event()

    async def watched(run: RunState) -> object:
        try:
            return await function(run)
        finally:
            is_over.set()

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live, node, watched, run_id)
            await is_over.wait()
            await anyio.wait_all_tasks_blocked()
            before = await node.runs.get(run_id)
            bank.may_answer.set()
    return before, await node.runs.get(run_id)


async def test_a_run_that_fails_beside_a_step_ends_after_it_and_undoes_it(node: AsyncNode) -> None:
    bank = Bank()

    async def bad() -> None:
        await bank.has_left.wait()
        raise ValueError("no")

    async def shop(run: RunState) -> None:
        await asyncio.gather(bank.pay("late"), bad())  # noqa: TID251 - it is what users write

    before, after = await outlived(node, bank, shop)

    assert (before.status, after.status) == (RunStatus.RUNNING, RunStatus.FAILED)
    assert await statuses(node, after.run_id) == [("_pay", EffectStatus.CONFIRMED)]
    assert await undo(node) == ["late"]


async def test_a_run_whose_function_returns_beside_a_step_ends_after_it(node: AsyncNode) -> None:
    bank = Bank()
    kept: list[Awaitable[object]] = []

    async def shop(run: RunState) -> str:
        kept.append(asyncio.create_task(bank.pay("late")))  # noqa: TID251 - it is what users write
        await bank.has_left.wait()
        return "done"

    before, after = await outlived(node, bank, shop)

    assert (before.status, after.status, after.detail_json) == (RunStatus.RUNNING, RunStatus.TERMINAL, '"done"')
    assert await statuses(node, after.run_id) == [("_pay", EffectStatus.CONFIRMED)]


async def test_no_step_begins_after_its_function_has_ended(node: AsyncNode) -> None:
    bank = Bank()
    kept: list[asyncio.Task[object]] = []

    async def two() -> None:
        await bank.pay("first")
        await bank.pay("second")

    async def shop(run: RunState) -> None:
        kept.append(asyncio.create_task(two()))  # noqa: TID251 - it is what users write
        await bank.has_left.wait()

    _, after = await outlived(node, bank, shop)
    with anyio.fail_after(DEADLINE_S):
        (answer,) = await asyncio.gather(*kept, return_exceptions=True)  # noqa: TID251 - they are tasks of asyncio

    assert "has ended" in str(answer) and after.status is RunStatus.TERMINAL
    assert await statuses(node, after.run_id) == [("_pay", EffectStatus.CONFIRMED)]


@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_reservation_that_is_left_open_does_not_hold_the_run(node: AsyncNode, is_refused: bool) -> None:
    opened: list[tape.reserve] = []

    async def shop(run: RunState) -> str:
        opened.append(tape.reserve(usd=1))
        await opened[0].__aenter__()
        if is_refused:
            await asyncio.gather(wire("tea"), wire("milk"))  # noqa: TID251 - it is what users write
        return "done"

    ended = await live(node, shop)

    assert ended.status is (RunStatus.RUNNING if is_refused else RunStatus.TERMINAL)


async def cancelled_by_a_sibling(bank: Bank) -> None:
    async def bad() -> None:
        await bank.has_left.wait()
        raise ValueError("no")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bank.pay, "late")
        tasks.start_soon(bad)


async def cancelled_at_a_time_limit(bank: Bank) -> None:
    task = asyncio.create_task(bank.pay("late"))  # noqa: TID251 - it is what users write
    await bank.has_left.wait()
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("cancelled", [cancelled_by_a_sibling, cancelled_at_a_time_limit])
async def test_an_effect_that_its_function_cancelled_is_unknown_when_the_run_ends(
    node: AsyncNode, cancelled: Callable[[Bank], Awaitable[None]]
) -> None:
    bank = Bank()

    async def shop(run: RunState) -> None:
        await cancelled(bank)
        raise ValueError("no")

    ended = await live(node, shop)
    (effect,) = await node.effects.list_all(ended.run_id)
    await node.effects.reconcile(ended.run_id, effect.idempotency_key, EffectStatus.CONFIRMED, response="paid")

    assert (ended.status, effect.status) == (RunStatus.FAILED, EffectStatus.UNKNOWN)
    assert await undo(node) == ["late"]


async def test_a_run_that_fails_beside_an_effect_that_nobody_carries_out_is_left(node: AsyncNode) -> None:
    run = await node.runs.begin("shop", "ann", "s", "1")

    async def bad(run_id: str) -> None:
        await until(lambda: node.effects.list_all(run_id), bool)
        raise ValueError("no")

    async def shop(run: RunState) -> None:
        await asyncio.gather(deliver("late"), bad(run.run_id))  # noqa: TID251 - it is what users write

    with anyio.fail_after(DEADLINE_S):
        await AgentWorker(app="shop", function=shop).run_once(node)

    assert (await node.runs.get(run.run.run_id)).is_active
    assert await statuses(node, run.run.run_id) == [("deliver", EffectStatus.PENDING)]


async def test_a_run_that_is_cancelled_while_it_waits_for_a_step_to_end_is_left_at_once(node: AsyncNode) -> None:
    bank = Bank()
    kept: list[Awaitable[object]] = []
    run_id = (await begin_run(node, owner="w1")).run_id

    async def shop(run: RunState) -> None:
        kept.append(asyncio.create_task(bank.pay("late")))  # noqa: TID251 - it is what users write
        await bank.has_left.wait()
        await node.runs.cancel(run_id)

    agents = AgentJob(node, None, shop, owner="w1", lease=SHORT)
    with anyio.fail_after(DEADLINE_S):
        ended = await agents.resume(run_id)

    assert ended.status is RunStatus.CANCELLED


def in_a_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(wire, ["tea", "milk"]))


def reserving_in_a_pool() -> None:
    def reserve() -> None:
        with tape.reserve(usd=1):
            wire("tea")

    with ThreadPoolExecutor(2) as pool:
        pool.submit(copy_context().run, reserve).result()


def in_a_loop_of_its_own() -> None:
    async def both() -> None:
        await wire("tea")

    asyncio.run(both())


def reserving_in_a_loop_of_its_own() -> None:
    async def both() -> None:
        async with tape.reserve(usd=1):
            await anyio.lowlevel.checkpoint()

    asyncio.run(both())


def wrapped() -> None:
    try:
        in_a_pool()
    except ValueError as error:
        raise ExceptionGroup("two faults", [RuntimeError("no"), ExceptionGroup("more", [error])]) from None


def within_an_effect() -> None:
    tape.effect(retry=tape.Retries(attempts=3))(in_a_pool)()


OUTSIDE = [
    in_a_pool, reserving_in_a_pool, in_a_loop_of_its_own, reserving_in_a_loop_of_its_own, wrapped, within_an_effect,
]  # fmt: skip


@pytest.mark.parametrize("outside", OUTSIDE)
async def test_a_step_outside_the_functions_own_threads_and_loop_leaves_the_run(
    node: AsyncNode, outside: Callable[[], None]
) -> None:
    refused: list[BaseException] = []

    def shop(run: RunState) -> None:
        wire("bread")
        try:
            outside()
        except Exception as error:
            refused.append(error)
            raise

    def mended(run: RunState) -> list[object]:
        return [wire("bread"), wire("tea")]

    left = await live(node, shop)
    ended = await live(node, mended, left.run_id)

    assert left.status is RunStatus.RUNNING and refused and await undo(node) == []
    assert ended.detail_json == '["bread sent","tea sent"]'


async def test_a_step_in_an_executor_leaves_the_run_of_an_async_function(node: AsyncNode) -> None:
    async def shop(run: RunState) -> None:
        await wire("bread")
        await asyncio.get_running_loop().run_in_executor(None, wire, "tea")

    left = await live(node, shop)

    assert left.status is RunStatus.RUNNING and await undo(node) == []


async def test_a_step_in_another_event_loop_is_refused_with_advice(node: AsyncNode) -> None:
    refused: list[str] = []

    def shop(run: RunState) -> None:
        try:
            in_a_loop_of_its_own()
        except tape.UsageError as error:
            refused.append(str(error))

    left = await live(node, shop)

    assert left.is_active and "make the durable function async" in refused[0]
