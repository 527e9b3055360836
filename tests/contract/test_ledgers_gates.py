"""Gates and timers in their ledgers."""

from datetime import timedelta

import pytest

from tape.bus.journal import Journal
from tape.core.errors import StaleClaim
from tape.core.run_state import RunStatus
from tape.core.timer import GATE_TIMEOUT, TimerStatus
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.ledgers import begin_run, concurrently, subjects, two_nodes, until

pytestmark = needs_ledgers

SECOND = timedelta(seconds=1)


async def test_a_signal_may_come_before_the_wait(node: AsyncNode) -> None:
    run = await begin_run(node)

    signal = await node.gates.send(run.run_id, "approval", {"by": "bob"})
    passage = await node.gates.wait(run.run_id, "approval")

    assert signal.is_accepted and signal.run_status is None
    assert passage.resolution_json == '{"by":"bob"}'


async def test_a_signal_after_the_wait_lets_the_run_go_on(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    parked = await node.gates.wait(run.run_id, "approval", context={"amount": 7})

    signal = await node.gates.send(run.run_id, "approval", "yes")

    assert not parked.is_delivered and signal.run_status is RunStatus.RUNNABLE
    assert (await node.gates.wait(run.run_id, "approval")).resolution_json == '"yes"'
    assert [subject for subject in await subjects(journal) if "/gate/" in subject] == [
        f"/tape/gate/waiting/approval/{run.run_id}",
        f"/tape/gate/released/approval/{run.run_id}",
    ]


async def test_a_gate_is_passed_again(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.gates.send(run.run_id, "approval", 1)

    parked = await node.gates.wait(run.run_id, "approval", 1)
    await node.gates.send(run.run_id, "approval", 2)
    answers = [(await node.gates.wait(run.run_id, "approval", index)).resolution_json for index in (0, 1, 0)]

    assert not parked.is_delivered and answers == ["1", "2", "1"]


async def test_a_signal_with_a_key_is_sent_once(node: AsyncNode) -> None:
    run = await begin_run(node)

    signals = [await node.gates.send(run.run_id, "approval", "yes", key="k") for _ in range(3)]
    gate = await node.gates.get(run.run_id, "approval")

    assert signals[0] == signals[1] == signals[2]
    assert gate is not None and gate.resolutions == ('"yes"',)


async def test_a_session_s_newest_run_gets_its_signal(node: AsyncNode) -> None:
    await begin_run(node, "1")
    newest = await begin_run(node, "2")

    signal = await node.gates.send_to_session("treasury", "ann", "s", "approval", "yes")

    assert signal.run_id == newest.run_id
    assert (await node.gates.wait(newest.run_id, "approval")).is_delivered


async def test_a_signal_to_a_session_is_repeated_exactly_though_a_newer_run_has_begun(node: AsyncNode) -> None:
    run = await begin_run(node, "1")
    first = await node.gates.send_to_session("treasury", "ann", "s", "approval", "yes", key="k")
    newest = await begin_run(node, "2")

    again = await node.gates.send_to_session("treasury", "ann", "s", "approval", "yes", key="k")

    assert first == again and first.run_id == run.run_id
    assert await node.gates.get(newest.run_id, "approval") is None


async def test_no_signal_is_lost_between_those_who_send_and_the_one_who_waits(backend: Backend) -> None:
    async with two_nodes(backend) as (one, other):
        run = await begin_run(one)

        async def act(number: int) -> object:
            if number % 3 == 0:
                return await one.gates.wait(run.run_id, "approval")
            return await other.gates.send(run.run_id, "approval", number)

        await concurrently(9, act)
        gate = await one.gates.get(run.run_id, "approval")

        assert gate is not None and sorted(gate.resolutions) == ["1", "2", "4", "5", "7", "8"]
        assert (await one.runs.get(run.run_id)).status is not RunStatus.WAITING


async def test_a_timer_whose_handler_is_lost_comes_again(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.timers.set(run.run_id, "t", 1, "redrive", {"n": 1})
    (due,) = await node.timers.due()

    lost = await node.timers.claim(run.run_id, "t", "h1", SECOND)
    busy = await node.timers.due()
    held = await until(lambda: node.timers.claim(run.run_id, "t", "h2"), lambda claim: claim.is_acquired)
    fired = await node.timers.fire(run.run_id, "t", held.timer.claim.attempt)

    assert due.payload_json == '{"n":1}' and lost.is_acquired and busy == []
    assert fired.status is TimerStatus.FIRED and await node.timers.due() == []


async def test_p11_a_timer_that_nobody_has_claimed_is_fired_by_nobody(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.timers.set(run.run_id, "t", 1, "redrive")

    for attempt in (0, 1):
        with pytest.raises(StaleClaim):
            await node.timers.fire(run.run_id, "t", attempt)

    assert [timer.timer_id for timer in await node.timers.due()] == ["t"]


async def test_p11_a_handler_whose_timer_was_set_again_does_not_fire_the_new_one(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.timers.set(run.run_id, "t", 1, "redrive", 1)
    held = await node.timers.claim(run.run_id, "t", "h1")

    await node.timers.set(run.run_id, "t", 2, "redrive", 2)
    with pytest.raises(StaleClaim):
        await node.timers.fire(run.run_id, "t", held.timer.claim.attempt)

    assert [timer.payload_json for timer in await node.timers.due()] == ["2"]


async def test_a_timer_is_due_at_its_time_and_not_before(node: AsyncNode) -> None:
    run = await begin_run(node)
    at = run.claim.expires_at_ms
    await node.timers.set(run.run_id, "t", at)

    assert await node.timers.due() == await node.timers.due(now_ms=at - 1) == []
    assert [timer.timer_id for timer in await node.timers.due(now_ms=at)] == ["t"]
    assert await node.timers.cancel(run.run_id, "t") and await node.timers.due(now_ms=at) == []


async def test_a_timeout_answers_at_its_gate(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    await node.gates.wait(run.run_id, "approval")
    await node.timers.set(run.run_id, "t", 1, GATE_TIMEOUT, {"gate": "approval"})

    held = await node.timers.claim(run.run_id, "t", "h1")
    await node.timers.fire(run.run_id, "t", held.timer.claim.attempt)
    passage = await node.gates.wait(run.run_id, "approval")

    assert passage.resolution_json == '{"timed_out":true,"payload":{"gate":"approval"}}'
    assert (await node.runs.get(run.run_id)).status is RunStatus.RUNNABLE
    assert await node.timers.due() == []
    assert [subject.split("/")[2:4] for subject in await subjects(journal)][-4:] == [
        ["timer", "set"],
        ["timer", "fired"],
        ["gate", "released"],
        ["run", "runnable"],
    ]
