"""The jobs beside runs: dispatch their effects, compensate them, and fire their timers."""

from datetime import timedelta

import anyio
import pytest

import tape
from tape.core.effect import Compensation, Effect, EffectStatus, Semantics
from tape.core.obligation import ObligationStatus
from tape.core.run_state import RunStatus
from tape.core.timer import Timer, TimerStatus
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.durable.dispatch_job import ATTEMPTS, Connector, DispatchJob
from tape.sdk.durable.receiver import Receiver, message_of
from tape.sdk.durable.references import reference
from tape.sdk.durable.timer_job import TimerJob
from tape.sdk.nouns.node import AsyncNode
from tape.work.jobs import job_worker
from tests.contract import inverse
from tests.contract.backends import on_disk
from tests.contract.ledgers import begin_run, concurrently, queue_effect, until
from tests.deadlines import DEADLINE_S

pytestmark = on_disk

ONCE = Semantics.NON_IDEMPOTENT


async def dispatched(node: AsyncNode, owner: str = "d1", **connectors: Connector) -> int:
    return await job_worker(DispatchJob(node, connectors, owner=owner)).run_once()


async def now(node: AsyncNode, effect: Effect) -> Effect:
    found = await node.effects.get(effect.run_id, effect.idempotency_key)
    assert found is not None
    return found


async def test_an_effect_without_a_connector_here_stays_pending_for_others(node: AsyncNode) -> None:
    effect = await queue_effect(node)

    assert await dispatched(node) == await dispatched(node, shop=lambda effect: "sold") == 0

    assert await now(node, effect) == effect and effect.status is EffectStatus.PENDING
    assert await dispatched(node, bank=lambda effect: "paid") == 1


async def test_a_connector_s_answer_is_the_response_and_carries_the_key(node: AsyncNode) -> None:
    effect = await queue_effect(node)

    await dispatched(node, bank=lambda held: {"external_ref": "b-1", "key": tape.idempotency_key()})

    after = await now(node, effect)
    assert (after.status, after.external_ref) == (EffectStatus.CONFIRMED, "b-1")
    assert after.response_json == f'{{"external_ref":"b-1","key":"{effect.idempotency_key}"}}'


async def test_of_many_dispatchers_one_carries_an_effect_out(node: AsyncNode) -> None:
    calls: list[str] = []
    await queue_effect(node)

    await concurrently(8, lambda number: dispatched(node, f"d{number}", bank=lambda effect: calls.append(effect.tool)))

    assert calls == ["wire"]


@pytest.mark.parametrize(
    ("semantics", "error", "status"),
    [
        (Semantics.IDEMPOTENT, OSError("busy"), EffectStatus.PENDING),
        (ONCE, OSError("refused"), EffectStatus.FAILED),
        (ONCE, tape.AckLost("gone"), EffectStatus.UNKNOWN),
    ],
)
async def test_what_a_connector_raises_decides_the_status(
    node: AsyncNode, semantics: Semantics, error: Exception, status: EffectStatus
) -> None:
    effect = await queue_effect(node, semantics)

    def fail(held: Effect) -> None:
        raise error

    assert await dispatched(node, bank=fail) == 1
    assert await dispatched(node, bank=fail) == 0

    after = await now(node, effect)
    assert after.status is status
    assert str(error) in after.error_json + after.last_dispatch_error


@pytest.mark.parametrize("text", ["\0", "\ud800"])
async def test_what_a_connector_or_an_inverse_raises_may_hold_what_is_no_text(node: AsyncNode, text: str) -> None:
    effect = await queue_effect(node, ONCE, "another")
    run_id = await owing(node, "no.such.module:undo", max_attempts=1)

    def fail(*_: object) -> None:
        raise OSError(f"before{text}after")

    assert await dispatched(node, bank=fail) == 1
    assert await job_worker(CompensationJob(node, owner="d1", inverses={"no.such.module:undo": fail})).run_once() == 1

    (owed,) = await node.obligations.list_all(run_id)
    assert (await now(node, effect)).status is EffectStatus.FAILED
    assert (owed.status, owed.last_error) == (ObligationStatus.STUCK, "OSError: before\N{REPLACEMENT CHARACTER}after")


async def test_an_effect_that_can_be_repeated_has_failed_after_its_last_attempt(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    for _ in range(ATTEMPTS - 1):
        held = (await node.dispatch.claim(effect.run_id, effect.idempotency_key, "d0")).effect
        await node.dispatch.attempt(effect.run_id, effect.idempotency_key, held.claim.attempt, "busy", 1)

    await dispatched(node, bank=lambda held: 1 / 0)

    assert (await now(node, effect)).status is EffectStatus.FAILED


async def test_a_message_that_comes_twice_is_handled_once(node: AsyncNode) -> None:
    calls: list[str] = []
    message = message_of(await queue_effect(node, ONCE))
    receivers = [Receiver(node, lambda effect: calls.append(effect.tool), owner=f"r{n}") for n in range(3)]

    answers = [await receiver.receive(message) for receiver in (*receivers, receivers[0])]

    assert answers == [True] * 4 and calls == ["wire"]


async def test_a_message_that_another_is_about_to_handle_is_kept(node: AsyncNode) -> None:
    effect = await queue_effect(node, ONCE)
    await node.dispatch.claim(effect.run_id, effect.idempotency_key, "other")

    assert not await Receiver(node, lambda effect: "paid", owner="r1").receive(message_of(effect))


async def test_a_message_that_names_no_effect_is_dropped(node: AsyncNode) -> None:
    calls: list[Effect] = []
    receiver = Receiver(node, calls.append, owner="r1")
    odd = [b"", b"no JSON", b"[]", b"{}", b'{"run_id":1,"idempotency_key":"k"}', b"\xff", b'{"run_id":"r"}']

    assert [await receiver.receive(message) for message in odd] == [True] * len(odd) and calls == []


async def test_a_message_whose_result_nobody_knows_leaves_the_effect_unknown(node: AsyncNode) -> None:
    effect = await queue_effect(node, ONCE)

    def lose(held: Effect) -> None:
        raise tape.AckLost

    assert await Receiver(node, lose, owner="r1").receive(message_of(effect))

    assert (await now(node, effect)).status is EffectStatus.UNKNOWN
    assert await node.dispatch.due() == []


async def owing(node: AsyncNode, compensator_ref: str, max_attempts: int = 5) -> str:
    """A run that has failed after an effect."""
    run = await begin_run(node)
    how = Compensation(
        kind="undo", payload_json='{"args":[7],"kwargs":{}}', compensator_ref=compensator_ref, max_attempts=max_attempts
    )
    effect = await node.effects.begin(run.run_id, "wire", 7, compensation=how)
    await node.effects.complete(run.run_id, effect.idempotency_key, response="b-1")
    await node.runs.end(run.run_id, RunStatus.FAILED)
    return run.run_id


async def test_a_process_without_the_agent_compensates_with_its_registered_compensator(node: AsyncNode) -> None:
    run_id = await owing(node, reference(inverse.undo))

    assert await job_worker(CompensationJob(node, owner="d1")).run_once() == 1

    (owed,) = await node.obligations.list_all(run_id)
    assert owed.status is ObligationStatus.COMPENSATED
    assert owed.result_json == f'["b-1",7,"{run_id}/decision--1/wire/0/undo"]'


def unregistered(result: object, amount: int) -> None:
    CALLED.append(result)


CALLED: list[object] = []


@pytest.mark.parametrize(
    "name", [f"{__name__}:unregistered", f"{__name__}:CALLED.append", "os:system", "no.such.module:undo", "undo"]
)
async def test_an_obligation_whose_compensator_nobody_here_registered_waits_unharmed(
    node: AsyncNode, name: str
) -> None:
    run_id = await owing(node, name, max_attempts=1)

    assert await job_worker(CompensationJob(node, owner="d1")).run_once() == 0

    (owed,) = await node.obligations.due()
    assert (owed.run_id, owed.status, owed.attempts, owed.last_error) == (run_id, ObligationStatus.PENDING, 0, "")
    assert CALLED == [] and await node.obligations.stuck() == []


async def test_an_obligation_that_nobody_here_can_meet_is_left_alone(node: AsyncNode) -> None:
    run_id = await owing(node, "")

    assert await job_worker(CompensationJob(node, owner="d1")).run_once() == 0
    assert [owed.run_id for owed in await node.obligations.due()] == [run_id]
    assert await job_worker(CompensationJob(node, owner="d1", inverses={"undo": lambda *_: None})).run_once() == 1


async def test_a_timeout_at_a_gate_lets_its_run_go_on(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.gates.wait(run.run_id, "approval")
    await node.timers.set(run.run_id, "t", 1, "gate_timeout", {"gate": "approval"})

    assert await job_worker(TimerJob(node, owner="d1")).run_once() == 1

    passage = await node.gates.wait(run.run_id, "approval")
    assert passage.resolution_json == '{"timed_out":true,"payload":{"gate":"approval"}}'


async def test_a_timer_is_handled_by_a_worker_with_a_handler_of_its_kind(node: AsyncNode) -> None:
    run = await begin_run(node)
    timer = await node.timers.set(run.run_id, "t", 1, "redrive")
    rung: list[Timer] = []

    assert await job_worker(TimerJob(node, owner="d1")).run_once() == 0
    assert await job_worker(TimerJob(node, owner="d1", handlers={"redrive": rung.append})).run_once() == 1

    assert [each.timer_id for each in rung] == ["t"] and timer.status is TimerStatus.SET
    assert await node.timers.due() == []


async def test_a_timer_whose_handler_fails_is_not_fired(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.timers.set(run.run_id, "t", 1, "redrive")

    assert await job_worker(TimerJob(node, owner="d1", handlers={"redrive": lambda timer: 1 / 0})).run_once() == 0

    claim = await node.timers.claim(run.run_id, "t", "d2")
    assert claim.timer.status is TimerStatus.SET and claim.timer.claim.owner == "d1"


async def test_a_job_worker_runs_until_it_is_stopped_and_finishes_what_it_began(node: AsyncNode) -> None:
    has_begun, may_end = anyio.Event(), anyio.Event()

    async def slow(effect: Effect) -> str:
        has_begun.set()
        await may_end.wait()
        return "paid"

    worker = job_worker(DispatchJob(node, {"bank": slow}, owner="d1", lease=timedelta(seconds=30)), slots=1)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            effect = await queue_effect(node)
            await has_begun.wait()
            worker.stop()
            may_end.set()

    assert (await until(lambda: now(node, effect), lambda found: found.is_settled)).status is EffectStatus.CONFIRMED
    assert worker.handled == 1
