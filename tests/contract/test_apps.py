"""Several apps on one store: each works on its own items, and items that no app handles block no others."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from tape.bus.journal import Journal
from tape.core.effect import Compensation, DispatchMode, Effect, EffectStatus, Resolution
from tape.core.obligation import ObligationStatus
from tape.core.ports import Store
from tape.core.run_state import RunStatus
from tape.core.timer import Timer
from tape.runs.ledgers import LocalLedgers
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.durable.dispatch_job import DispatchJob
from tape.sdk.durable.receiver import Receiver, message_of
from tape.sdk.durable.timer_job import TimerJob
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.ledgers import connect
from tape.work.jobs import job_worker
from tests.contract.backends import needs_ledgers
from tests.contract.ledgers import begin_run
from tests.contract.serving import served

pytestmark = needs_ledgers


class Apps(NamedTuple):
    """Programs of two apps, and one that names none."""

    shop: AsyncNode
    payments: AsyncNode
    nameless: AsyncNode


@pytest.fixture(params=["embedded", "grpc"])
async def apps(request: pytest.FixtureRequest, store: Store, journal: Journal) -> AsyncIterator[Apps]:
    if request.param == "embedded":
        yield Apps(*(AsyncNode(LocalLedgers(store, journal), app) for app in ("shop", "payments", "")))
        return
    async with (
        served(store, journal) as url,
        connect(url, "shop") as shop,
        connect(url, "payments") as payments,
        connect(url) as nameless,
    ):
        yield Apps(shop, payments, nameless)


async def owing(node: AsyncNode, name: str, kind: str = "refund") -> str:
    """A failed run with an obligation of its app."""
    run = await begin_run(node, name)
    effect = await node.effects.begin(run.run_id, "wire", 7)
    await node.effects.complete(run.run_id, effect.idempotency_key, response="b-1")
    await node.obligations.register(run.run_id, effect.idempotency_key, kind, 7, max_attempts=1)
    await node.runs.end(run.run_id, RunStatus.FAILED)
    return run.run_id


async def queue_effect(node: AsyncNode, name: str) -> Effect:
    run = await begin_run(node, name)
    return await node.effects.begin(run.run_id, "wire", 7, dispatch_mode=DispatchMode.OUTBOX, connector="bank")


async def waiting(node: AsyncNode, name: str) -> str:
    """A run that waits at a gate, for a time that is over."""
    run = await begin_run(node, name)
    await node.gates.wait(run.run_id, "approval")
    await node.timers.set(run.run_id, "t", 2, "gate_timeout", {"gate": "approval"})
    return run.run_id


async def test_overdue_timers_of_a_kind_that_nobody_handles_stop_no_gate_time_out(apps: Apps) -> None:
    run_id = await waiting(apps.shop, "waits")
    for number in range(9):
        await apps.shop.timers.set(run_id, f"odd-{number}", 1, "nobody-handles-this")

    assert await job_worker(TimerJob(apps.shop, owner="d1"), slots=4).run_once() == 1

    assert (await apps.shop.runs.get(run_id)).status is RunStatus.RUNNABLE
    assert len(await apps.shop.timers.due()) == 9


async def test_a_time_out_at_a_gate_is_served_by_any_app(apps: Apps) -> None:
    run_id = await waiting(apps.shop, "waits")

    assert await job_worker(TimerJob(apps.payments, owner="d1")).run_once() == 1

    assert (await apps.payments.runs.get(run_id)).status is RunStatus.RUNNABLE


async def test_an_obligation_is_met_by_a_worker_of_the_app_that_registered_it(apps: Apps) -> None:
    run_id = await owing(apps.payments, "1")
    undone: list[str] = []

    async def drained(node: AsyncNode, app: str) -> int:
        refund = {"refund": lambda *_: undone.append(app)}
        return await job_worker(CompensationJob(node, owner=app, inverses=refund)).run_once()

    assert [await drained(apps.shop, "shop"), await drained(apps.payments, "payments")] == [0, 1]

    (owed,) = await apps.payments.obligations.list_all(run_id)
    assert (owed.app, owed.status, undone) == ("payments", ObligationStatus.COMPENSATED, ["payments"])


async def test_what_other_apps_owe_hides_nothing_and_is_not_used_up(apps: Apps) -> None:
    for number in range(6):
        await owing(apps.payments, f"other-{number}")
        await owing(apps.shop, f"odd-{number}", "nobody-has-this")
    own = await owing(apps.shop, "own")

    work = CompensationJob(apps.shop, owner="d1", inverses={"refund": lambda *_: None})
    assert await job_worker(work, slots=1).run_once() == 1

    (owed,) = await apps.shop.obligations.list_all(own)
    left = await apps.nameless.obligations.due()
    assert owed.status is ObligationStatus.COMPENSATED and await apps.nameless.obligations.stuck() == []
    assert (len(left), {each.attempts for each in left}, {each.app for each in left}) == (12, {0}, {"shop", "payments"})


async def test_an_obligation_of_another_app_is_not_claimed_by_its_number_either(apps: Apps) -> None:
    run_id = await owing(apps.payments, "1")

    refused = await apps.shop.obligations.claim(run_id, 1, "d1")
    claimed = await apps.payments.obligations.claim(run_id, 1, "d2")

    assert (refused.is_acquired, refused.obligation.attempts, claimed.is_acquired) == (False, 0, True)


async def test_the_next_obligation_of_a_run_may_be_another_app_s(apps: Apps) -> None:
    run = await begin_run(apps.shop)
    for node, key in ((apps.shop, "first"), (apps.payments, "second")):
        await node.obligations.register(run.run_id, key, "refund")
    await apps.shop.runs.end(run.run_id, RunStatus.FAILED)
    inverse = {"refund": lambda *_: None}

    done = [
        await job_worker(CompensationJob(node, owner="d1", inverses=inverse)).run_once()
        for node in (apps.shop, apps.payments, apps.shop)
    ]

    assert done == [0, 1, 1]


async def test_what_was_done_twice_is_undone_by_the_app_whose_effect_it_was(apps: Apps) -> None:
    effect = await queue_effect(apps.payments, "1")
    await apps.nameless.dispatch.observe(
        effect.run_id, effect.idempotency_key, Resolution.DUPLICATE, compensate_on_duplicate=Compensation(kind="refund")
    )

    assert await apps.shop.obligations.due() == []
    assert [each.app for each in await apps.payments.obligations.due(compensators=["refund"])] == ["payments"]


async def test_an_effect_is_carried_out_by_a_worker_of_its_app(apps: Apps) -> None:
    effect = await queue_effect(apps.payments, "1")
    bank = {"bank": lambda held: "paid"}

    foreign = await job_worker(DispatchJob(apps.shop, bank, owner="d1")).run_once()
    message = await Receiver(apps.shop, bank["bank"], owner="d2").receive(message_of(effect))
    own = await job_worker(DispatchJob(apps.payments, bank, owner="d3")).run_once()

    found = await apps.payments.effects.get(effect.run_id, effect.idempotency_key)
    assert (foreign, message, own) == (0, False, 1)
    assert found is not None and (found.app, found.status) == ("payments", EffectStatus.CONFIRMED)


async def test_a_timer_is_handled_by_a_worker_of_its_app(apps: Apps) -> None:
    run = await begin_run(apps.payments)
    await apps.payments.timers.set(run.run_id, "t", 1, "redrive")
    rung: list[Timer] = []

    done = [
        await job_worker(TimerJob(node, owner="d1", handlers={"redrive": rung.append})).run_once()
        for node in (apps.shop, apps.payments)
    ]

    assert done == [0, 1] and [each.app for each in rung] == ["payments"]


async def test_work_without_an_app_is_for_every_app_and_a_client_without_one_sees_all(apps: Apps) -> None:
    run = await begin_run(apps.nameless)
    await apps.nameless.timers.set(run.run_id, "any", 1, "redrive")
    await apps.payments.timers.set(run.run_id, "one", 2, "redrive")

    seen = [[timer.timer_id for timer in await node.timers.due(kinds=["redrive"])] for node in apps]

    assert seen == [["any"], ["any", "one"], ["any", "one"]]
