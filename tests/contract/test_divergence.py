"""A divergence between a durable function and the history of its run pauses the run: it neither fails nor undoes it."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import tape
from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.effect import DispatchMode
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run_state import RunState, RunStatus
from tape.runs.ledgers import LocalLedgers
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.nouns.node import AsyncNode
from tape.work.jobs import job_worker
from tests.contract.backends import on_disk
from tests.contract.events import read_all
from tests.contract.ledgers import begin_run
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

MADE: list[str] = []
UNDONE: list[str] = []


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


@tape.effect(connector="bank", business_key="invoice-7")
async def pay(item: str) -> str:
    MADE.append(item)
    return f"{item} paid"


async def decide_and_pay(item: str) -> None:
    await tape.decide(lambda: item)
    await pay(item)


async def live(node: AsyncNode, function: Callable[[RunState], Any], run_id: str) -> RunState:
    with anyio.fail_after(DEADLINE_S):
        return await AgentJob(node, None, function, owner="w1").resume(run_id)


async def undone(node: AsyncNode) -> list[str]:
    await job_worker(CompensationJob(node, owner="w1")).run_once()
    return UNDONE


Step = Callable[[], Awaitable[Any]]

DIVERGENCES: dict[str, tuple[Step, Step]] = {
    "another request of an effect": (lambda: order("tea"), lambda: order("milk")),
    "another question of a decision": (lambda: tape.decide(dict, request=1), lambda: tape.decide(dict, request=2)),
    "another payment of an invoice": (lambda: pay("tea"), lambda: decide_and_pay("milk")),
}


@pytest.mark.parametrize("is_caught", [False, True], ids=["not caught", "caught"])
@pytest.mark.parametrize(("recorded", "asked"), DIVERGENCES.values(), ids=DIVERGENCES)
async def test_a_divergence_pauses_a_run_until_a_program_takes_the_recorded_steps(
    node: AsyncNode, recorded: Step, asked: Step, is_caught: bool
) -> None:
    async def first(run: RunState) -> object:
        await order("bread")
        await recorded()
        return await tape.gate("delivered")

    async def other(run: RunState) -> object:
        await order("bread")
        try:
            await asked()
        except Exception:
            if not is_caught:
                raise
        return "ended by a program that diverges"

    run_id = (await begin_run(node, owner="w1")).run_id
    await live(node, first, run_id)
    made = [*MADE]
    paused = await live(node, other, run_id)

    assert (paused.status, paused.detail_json) == (RunStatus.RUNNING, "")
    assert made == MADE and await undone(node) == []
    await node.gates.send(run_id, "delivered", "yes")
    ended = await live(node, first, run_id)
    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, '"yes"')


async def test_another_way_to_do_an_effect_that_has_no_outcome_is_a_divergence(node: AsyncNode) -> None:
    async def shop(run: RunState) -> object:
        return await order("tea")

    run_id = (await begin_run(node, owner="w1")).run_id
    request: JsonValue = {"args": ["tea"], "kwargs": {}}
    await node.effects.begin(run_id, "order", request, dispatch_mode=DispatchMode.OUTBOX, connector="shop")
    paused = await live(node, shop, run_id)

    assert paused.status is RunStatus.RUNNING and MADE == []


async def test_a_divergence_of_a_replaying_fork_pauses_it(node: AsyncNode, store: Store, journal: Journal) -> None:
    async def shop(run: RunState) -> object:
        return await order(str(await tape.mutation() or "tea"))

    parent = (await begin_run(node, owner="w1")).run_id
    await live(node, shop, parent)
    last = (await read_all(journal, parent))[-1].seq
    children = await LocalLedgers(store, journal).fork(RunId(parent), last, EffectPolicy.REPLAY, mutation="milk")
    paused = await live(node, shop, children[0].run_id)

    assert paused.status is RunStatus.RUNNING and MADE == ["tea"]


async def test_an_invoice_that_another_run_has_paid_in_another_way_is_an_error_of_the_function(node: AsyncNode) -> None:
    async def shop(run: RunState) -> object:
        return await pay(run.of.invocation)

    runs = [(await begin_run(node, name, "w1")).run_id for name in ("tea", "milk")]
    ended = [await live(node, shop, run_id) for run_id in runs]

    assert [each.status for each in ended] == [RunStatus.TERMINAL, RunStatus.FAILED]
    assert '"type":"Conflict"' in ended[1].detail_json and MADE == ["tea"]
