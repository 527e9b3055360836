"""Durable functions: whatever ends a worker, decisions, samples and effects stay, and effects happen once."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import anyio
import pytest

import tape
from tape.bus.journal import Journal
from tape.core.effect import DispatchMode, EffectStatus, Semantics
from tape.core.run_state import RunState, RunStatus
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.durable.retries import Retries
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import on_disk
from tests.contract.events import read_all
from tests.contract.ledgers import until
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

MOMENT = timedelta(milliseconds=1)


class Crash(BaseException):
    """Ends a worker at once."""


class Bank:
    """Counts calls by key; one of its tools may lose the answer."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.recalled: list[object] = []

    def wire(self, amount: int) -> dict[str, int]:
        self.calls.append(tape.idempotency_key())
        return {"paid": amount}


BANK = Bank()


def recall(receipt: object, amount: int) -> str:
    BANK.recalled.append((receipt, amount, tape.idempotency_key()))
    return "recalled"


@pytest.fixture(autouse=True)
def bank() -> Bank:
    BANK.__init__()  # type: ignore[misc]
    return BANK


@tape.effect(compensate=recall)
def wire(amount: int) -> object:
    return BANK.wire(amount)


async def begin(node: AsyncNode, name: str = "1") -> str:
    return (await node.runs.begin("treasury", "ann", "s", name, scopes=["payments"])).run.run_id


async def live(node: AsyncNode, function: Callable[[RunState], Any], run_id: str = "", owner: str = "w1") -> RunState:
    """Executes a run with one worker and returns its state."""
    found = run_id or await begin(node)
    return await AgentJob(node, "treasury", function, owner=owner).resume(found)


async def crash(node: AsyncNode, function: Callable[[RunState], Any], run_id: str) -> None:
    """A worker that dies in the middle of a function."""
    begun = await node.runs.take(run_id, "w1")
    with pytest.raises(BaseExceptionGroup) as caught:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(AgentJob(node, "treasury", function, owner="w1").execute, begun.run)
    assert caught.group_contains(Crash)


async def test_an_effect_before_a_crash_is_returned_and_not_repeated(node: AsyncNode, bank: Bank) -> None:
    crashes = iter([True, False])

    async def sweep(run: RunState) -> object:
        first = await wire(1)
        if next(crashes):
            raise Crash
        return [first, await wire(2)]

    run_id = await begin(node)
    await crash(node, sweep, run_id)
    ended = await live(node, sweep, run_id)

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, '[{"paid":1},{"paid":2}]')
    assert bank.calls == [f"{run_id}/decision--1/wire/0", f"{run_id}/decision--1/wire/1"]


async def test_a_plain_function_is_as_durable_as_an_async_one(node: AsyncNode, bank: Bank, journal: Journal) -> None:
    def sweep(run: RunState) -> object:
        amount = tape.decide(lambda: 7, model="m")
        with tape.reserve(usd=1) as spending:
            paid = wire(amount)
            spending.spent(usd=0.25)
        return [paid, tape.uuid() != tape.uuid(), 0 <= tape.random() < 1, tape.now() > 0]

    ended = await live(node, sweep)

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, '[{"paid":7},true,true,true]')
    assert bank.calls == [f"{ended.run_id}/decision-0/wire/0"]
    assert (await node.budgets.get(ended.run_id)).spent.usd == 0.25
    assert [entry.kind for entry in await read_all(journal, ended.run_id)].count("effect") == 10


async def test_time_and_chance_are_as_they_were_the_first_time(node: AsyncNode) -> None:
    seen: list[object] = []

    async def look(run: RunState) -> None:
        everything = [await tape.now(), await tape.uuid(), await tape.random(), await tape.random()]
        seen.append([*everything, await tape.sample("weather", lambda: len(seen))])
        if len(seen) == 1:
            raise Crash

    run_id = await begin(node)
    await crash(node, look, run_id)
    await live(node, look, run_id)

    assert seen[0] == seen[1] and len(seen) == 2


async def test_now_is_the_time_of_the_store(node: AsyncNode) -> None:
    async def look(run: RunState) -> object:
        return await tape.now()

    ended = await live(node, look)

    (asked,) = await node.effects.list_all(ended.run_id)
    assert json.loads(ended.detail_json) == asked.began_at_ms / 1000


async def test_a_decision_is_asked_for_once(node: AsyncNode) -> None:
    asked: list[int] = []
    crashes = iter([True, False])

    def ask() -> int:
        asked.append(1)
        return len(asked)

    async def think(run: RunState) -> object:
        answers = [await tape.decide(ask, model="m", request="how much?") for _ in range(2)]
        if next(crashes):
            raise Crash
        return answers

    run_id = await begin(node)
    await crash(node, think, run_id)

    assert (await live(node, think, run_id)).detail_json == "[1,2]" and len(asked) == 2


async def test_a_run_waits_at_a_gate_in_nobody_s_hands_and_goes_on_with_the_answer(node: AsyncNode, bank: Bank) -> None:
    async def ask(run: RunState) -> object:
        await wire(1)
        return [await tape.gate("approval", {"amount": 1}), await tape.gate("approval")]

    parked = await live(node, ask)
    await node.gates.send(parked.run_id, "approval", "yes")
    again = await live(node, ask, parked.run_id, "w2")
    await node.gates.send(parked.run_id, "approval", "sure")
    ended = await live(node, ask, parked.run_id, "w3")

    assert (parked.status, parked.claim.owner, again.status) == (RunStatus.WAITING, "", RunStatus.WAITING)
    assert (ended.status, ended.detail_json, len(bank.calls)) == (RunStatus.TERMINAL, '["yes","sure"]', 1)


async def test_a_plain_function_waits_at_a_gate_too(node: AsyncNode) -> None:
    def ask(run: RunState) -> object:
        try:
            return tape.gate("approval")
        except Exception:
            return "nobody who catches errors catches this"

    parked = await live(node, ask)
    await node.gates.send(parked.run_id, "approval", "yes")

    assert parked.status is RunStatus.WAITING
    assert (await live(node, ask, parked.run_id)).detail_json == '"yes"'


async def test_a_task_of_a_function_may_wait_at_a_gate(node: AsyncNode) -> None:
    async def ask(run: RunState) -> object:
        answers: list[object] = []

        async def one() -> None:
            answers.append(await tape.gate("approval"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
        return answers

    parked = await live(node, ask)
    await node.gates.send(parked.run_id, "approval", "yes")

    assert parked.status is RunStatus.WAITING
    assert (await live(node, ask, parked.run_id)).detail_json == '["yes"]'


async def test_a_worker_that_lost_its_run_ends_nothing_whatever_its_function_catches(
    node: AsyncNode, bank: Bank
) -> None:
    async def sweep(run: RunState) -> str:
        await node.runs.take(run.run_id, run.claim.owner)  # its later self, after a pause that nobody noticed
        try:
            await wire(1)
        except Exception:
            return "a stale worker has no result"
        return "paid"

    run_id = await begin(node)
    begun = await node.runs.take(run_id, "w1")
    await AgentJob(node, "treasury", sweep, owner="w1").execute(begun.run)

    assert (await node.runs.get(run_id)).status is RunStatus.RUNNING and bank.calls == []


@pytest.mark.parametrize("text", ["\0", "\ud800"])
async def test_a_function_that_fails_with_what_is_no_text_has_failed(node: AsyncNode, text: str) -> None:
    async def fail(run: RunState) -> None:
        raise ValueError(f"before{text}after")

    ended = await live(node, fail)

    assert ended.status is RunStatus.FAILED and "before\N{REPLACEMENT CHARACTER}after" in ended.detail_json


async def test_a_failure_beside_a_wait_is_a_failure(node: AsyncNode) -> None:
    async def both(run: RunState) -> None:
        async def fail() -> None:
            raise ValueError("no")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    ended = await live(node, both)

    assert ended.status is RunStatus.FAILED and "ExceptionGroup" in ended.detail_json


async def test_caps_that_somebody_gave_a_run_stay(node: AsyncNode) -> None:
    async def nothing(run: RunState) -> None:
        return

    run_ids = [await begin(node, name) for name in ("free", "capped")]
    await node.budgets.set(run_ids[1], 9)
    await AgentWorker(app="treasury", function=nothing, budget=tape.Budget(usd=1)).run_once(node)

    caps = [(await node.budgets.get(run_id)).usd_cap_micros for run_id in run_ids]
    assert caps == [1_000_000, 9_000_000]


async def test_what_does_not_fit_the_budget_is_not_done(node: AsyncNode, bank: Bank) -> None:
    async def sweep(run: RunState) -> None:
        async with tape.reserve(usd=2):
            await wire(1)

    run_id = await begin(node)
    await AgentWorker(app="treasury", function=sweep, budget=tape.Budget(usd=1)).run_once(node)

    assert "LimitReached" in (await node.runs.get(run_id)).detail_json and bank.calls == []


async def test_a_failed_run_undoes_what_it_did_newest_first_with_what_it_came_to(node: AsyncNode, bank: Bank) -> None:
    async def fail(run: RunState) -> None:
        await wire(1)
        await wire(2)
        raise ValueError("no")

    run_id = await begin(node)
    await AgentWorker(app="treasury", function=fail).run_once(node)

    assert [each[:2] for each in bank.recalled] == [({"paid": 2}, 2), ({"paid": 1}, 1)]  # type: ignore[index]
    assert bank.recalled[0][2] == f"{run_id}/decision--1/wire/1/recall"  # type: ignore[index]
    assert (await node.runs.get(run_id)).detail_json == '{"type":"ValueError","message":"no"}'
    assert [each.result_json for each in await node.obligations.list_all(run_id)] == ['"recalled"'] * 2


async def test_what_a_worker_left_in_doubt_is_looked_for_before_it_is_done(node: AsyncNode) -> None:
    done: list[str] = []
    fate = iter(["dies before", "dies after", "lives"])

    async def find_post() -> object:
        return done[0] if done else None

    @tape.effect(status_check=find_post)
    async def post() -> str:
        results = next(fate)
        if results != "dies before":
            done.append(results)
        if results != "lives":
            raise Crash
        return results

    async def books(run: RunState) -> object:
        return await post()

    run_id = await begin(node)
    await crash(node, books, run_id)
    await crash(node, books, run_id)

    assert (await live(node, books, run_id)).detail_json == '"dies after"' and done == ["dies after"]


async def test_a_lost_answer_is_looked_for_and_what_nobody_finds_is_unknown(node: AsyncNode) -> None:
    async def look(seen: str | None) -> str | None:
        if seen == "down":
            raise OSError(seen)
        return seen

    @tape.effect(status_check=look)
    async def post(seen: str | None) -> None:
        raise tape.AckLost

    async def books(run: RunState) -> object:
        for seen in ("found", None, "down"):
            with suppress(tape.EffectFailed, tape.EffectUnknown):
                results.append(await post(seen))
        return results

    results: list[object] = []
    ended = await live(node, books)

    effects = sorted(await node.effects.list_all(ended.run_id), key=lambda effect: effect.idempotency_key)
    assert [effect.status.value for effect in effects] == ["confirmed", "failed", "unknown"]
    assert ended.detail_json == '["found"]'


BUSY = Retries(attempts=3, base=MOMENT, never=(KeyError,))
TROUBLE: dict[str, list[type[Exception]]] = {
    "busy twice": [OSError, OSError],
    "never again": [KeyError],
    "always busy": [OSError] * 9,
    "busy, then never again": [OSError, KeyError],
}


async def test_a_tool_is_tried_as_often_as_its_policy_says(node: AsyncNode) -> None:
    made: Counter[str] = Counter()

    @tape.effect(retry=BUSY)
    async def post(trouble: str) -> str:
        made[trouble] += 1
        if made[trouble] <= len(TROUBLE[trouble]):
            raise TROUBLE[trouble][made[trouble] - 1]
        return "posted"

    async def books(run: RunState) -> None:
        for trouble in TROUBLE:
            with suppress(tape.EffectFailed):
                await post(trouble)

    ended = await live(node, books)

    effects = sorted(await node.effects.list_all(ended.run_id), key=lambda effect: effect.idempotency_key)
    assert list(made.values()) == [3, 1, 3, 2]
    assert [effect.status.value for effect in effects] == ["confirmed", "failed", "failed", "failed"]


async def test_a_failure_is_the_same_failure_when_the_function_is_run_again(node: AsyncNode) -> None:
    results: list[str] = []

    @tape.effect()
    async def post() -> None:
        raise OSError("full")

    async def books(run: RunState) -> None:
        try:
            await post()
        except tape.EffectFailed as error:
            results.append(str(error))
        if len(results) == 1:
            raise Crash

    run_id = await begin(node)
    await crash(node, books, run_id)
    await live(node, books, run_id)

    assert results == ['effect \'post\' failed: {"type":"OSError","message":"full"}'] * 2


async def test_a_worker_whose_run_was_cancelled_is_stopped(node: AsyncNode) -> None:
    has_begun, was_stopped = anyio.Event(), anyio.Event()

    async def wait(run: RunState) -> None:
        has_begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            was_stopped.set()

    run_id = await begin(node)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            agents = AgentJob(node, "treasury", wait, owner="w1", lease=timedelta(seconds=1))
            tasks.start_soon(agents.resume, run_id)
            await has_begun.wait()
            await node.runs.cancel(run_id)

    assert was_stopped.is_set() and (await node.runs.get(run_id)).status is RunStatus.CANCELLED


async def test_a_heartbeat_keeps_a_run_that_takes_long(node: AsyncNode) -> None:
    async def wait(run: RunState) -> None:
        first = run.claim.expires_at_ms
        await until(lambda: node.runs.get(run.run_id), lambda state: state.claim.expires_at_ms > first)

    run_id = await begin(node)
    with anyio.fail_after(DEADLINE_S):
        ended = await AgentJob(node, "treasury", wait, owner="w1", lease=timedelta(seconds=1)).resume(run_id)

    assert ended.status is RunStatus.TERMINAL


async def test_a_run_that_another_works_on_is_not_resumed(node: AsyncNode) -> None:
    run_id = await begin(node)
    await node.runs.take(run_id, "w1")

    with pytest.raises(tape.Conflict, match="'w1' works on run"):
        await live(node, repr, run_id, "w2")


async def test_a_worker_takes_runs_of_its_application_each_once(node: AsyncNode, bank: Bank) -> None:
    for number in range(6):
        await begin(node, str(number))
    other = (await node.runs.begin("other")).run.run_id

    async def sweep(run: RunState) -> None:
        await wire(int(run.of.invocation))

    workers = [AgentWorker(app="treasury", function=sweep, slots=2) for _ in range(3)]
    async with anyio.create_task_group() as tasks:
        for worker in workers:
            tasks.start_soon(worker.run_once, node)

    assert len(bank.calls) == 6 == len(set(bank.calls))
    assert (await node.runs.get(other)).status is RunStatus.RUNNABLE


async def test_an_effect_for_the_outbox_is_waited_for(node: AsyncNode) -> None:
    @tape.effect(
        semantics=Semantics.NON_IDEMPOTENT, dispatch=DispatchMode.OUTBOX, connector="bank", scope="payments",
        business_key=lambda amount: f"sweep-{amount}",
    )  # fmt: skip
    async def order(amount: int) -> None:
        raise AssertionError("others do it")

    async def sweep(run: RunState) -> object:
        return await order(3)

    run_id = await begin(node)
    worker = AgentWorker(
        app="treasury", function=sweep, connectors={"bank": lambda effect: {"external_ref": effect.business_key}}
    )
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            parts = worker.workers(node)
            for each in parts:
                tasks.start_soon(each.run)
            await until(lambda: node.runs.get(run_id), lambda run: not run.is_active)
            for each in parts:
                each.stop()

    (effect,) = await node.effects.list_all(run_id)
    assert (effect.status, effect.external_ref) == (EffectStatus.CONFIRMED, "sweep-3")
    assert (await node.runs.get(run_id)).detail_json == '{"external_ref":"sweep-3"}'


@tape.effect(dispatch=DispatchMode.OUTBOX, connector="bank")
async def transfer(amount: int) -> None:
    raise AssertionError("others do it")


async def transferring(run: RunState) -> object:
    return await transfer(3)


async def test_once_carries_out_what_its_runs_wait_for(node: AsyncNode) -> None:
    run_id = await begin(node)
    worker = AgentWorker(app="treasury", function=transferring, connectors={"bank": lambda effect: "paid"})

    with anyio.fail_after(DEADLINE_S):
        await worker.run_once(node)

    run = await node.runs.get(run_id)
    assert (run.status, run.detail_json) == (RunStatus.TERMINAL, '"paid"')


@pytest.mark.parametrize("connectors", [{"bank": lambda effect: 1 / 0}, {}], ids=["one that fails", "none"])
async def test_once_leaves_a_run_whose_effect_nobody_can_carry_out_now(node: AsyncNode, connectors: Any) -> None:
    run_id = await begin(node)

    with anyio.fail_after(DEADLINE_S):
        await AgentWorker(app="treasury", function=transferring, connectors=connectors).run_once(node)

    (effect,) = await node.effects.list_all(run_id)
    assert effect.status is EffectStatus.PENDING and bool(effect.dispatch_attempts) is bool(connectors)
    assert (await node.runs.get(run_id)).is_active
