"""Deadlines of effects: the outcome of a call that takes longer is unknown."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import pytest

import tape
from tape.core.effect import DispatchMode, EffectStatus
from tape.core.run_state import RunState
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import on_disk
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

BRIEF = timedelta(milliseconds=50)


async def in_loop() -> None:
    await anyio.sleep_forever()


def in_thread() -> None:
    threading.Event().wait(1)


async def begun(node: AsyncNode) -> str:
    return (await node.runs.begin("treasury", "ann", "s", "1")).run.run_id


@pytest.mark.parametrize("hang", [in_loop, in_thread])
async def test_an_effect_that_hangs_is_unknown_after_its_deadline(node: AsyncNode, hang: Callable[[], Any]) -> None:
    wire = tape.effect(timeout=BRIEF)(hang)

    async def books(run: RunState) -> object:
        return await wire()

    with anyio.fail_after(DEADLINE_S):
        ended = await AgentJob(node, "treasury", books, owner="w1").resume(await begun(node))

    (effect,) = await node.effects.list_all(ended.run_id)
    assert effect.status is EffectStatus.UNKNOWN and not ended.is_active


async def test_an_effect_that_hangs_is_looked_for_after_its_deadline(node: AsyncNode) -> None:
    async def look() -> str:
        return "paid"

    wire = tape.effect(status_check=look, timeout=BRIEF)(in_loop)

    async def books(run: RunState) -> object:
        return await wire()

    with anyio.fail_after(DEADLINE_S):
        ended = await AgentJob(node, "treasury", books, owner="w1").resume(await begun(node))

    assert ended.detail_json == '"paid"'


async def test_a_connector_that_hangs_leaves_its_effect_unknown(node: AsyncNode) -> None:
    wire = tape.effect(dispatch=DispatchMode.OUTBOX, connector="bank")(in_loop)

    async def books(run: RunState) -> object:
        return await wire()

    async def hang(effect: object) -> None:
        await anyio.sleep_forever()

    run_id = await begun(node)
    with anyio.fail_after(DEADLINE_S):
        await AgentWorker(app="treasury", function=books, connectors={"bank": hang}, deadline=BRIEF).run_once(node)

    (effect,) = await node.effects.list_all(run_id)
    assert effect.status is EffectStatus.UNKNOWN
