"""Decisions and effects in their ledgers."""

from datetime import timedelta

import pytest

from tape.bus.journal import Journal
from tape.core.effect import Compensation, DispatchMode, EffectStatus, Resolution, Semantics
from tape.core.errors import Conflict, NotReady, ScopeDenied, StaleClaim, UsageError
from tape.core.run_state import RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import read_all
from tests.contract.ledgers import begin_run, concurrently, far_or_not, queue_effect, subjects, two_nodes, until

pytestmark = needs_ledgers

SECOND = timedelta(seconds=1)
ONCE = Semantics.NON_IDEMPOTENT


async def test_the_first_decision_at_a_place_stays(node: AsyncNode) -> None:
    run = await begin_run(node)

    first = await node.decisions.record(run.run_id, 0, response="yes")
    second = await node.decisions.record(run.run_id, 0, response="no")
    with pytest.raises(Conflict):
        await node.decisions.record(run.run_id, 0, request="another", response="no")

    assert first == second == await node.decisions.get(run.run_id, 0)
    assert await node.decisions.get(run.run_id, 1) is None


async def test_decisions_are_listed_in_their_order(node: AsyncNode) -> None:
    run = await begin_run(node)
    for index in (10, 9, 0):
        await node.decisions.record(run.run_id, index)

    assert [each.decision_index for each in await node.decisions.list_all(run.run_id)] == [0, 9, 10]


async def test_an_effect_is_begun_once_and_completed_once(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)

    first = await node.effects.begin(run.run_id, "wire", {"amount": 7}, decision_index=0)
    second = await node.effects.begin(run.run_id, "wire", {"amount": 7}, decision_index=0)
    done = await node.effects.complete(run.run_id, first.idempotency_key, response={"id": 1})
    late = await node.effects.complete(run.run_id, first.idempotency_key, response={"id": 1})

    assert first == second and first.status is EffectStatus.PENDING
    assert first.idempotency_key == f"{run.run_id}/decision-0/wire/0"
    assert done == late == await node.effects.get(run.run_id, first.idempotency_key)
    assert [entry.type for entry in await read_all(journal, run.run_id)] == ["running", "pending", "confirmed"]


async def test_completing_before_beginning_is_refused(node: AsyncNode) -> None:
    run = await begin_run(node)

    with pytest.raises(NotReady):
        await node.effects.complete(run.run_id, "never-begun")


async def test_what_was_under_way_when_its_run_was_cancelled_still_gets_its_outcome(
    node: AsyncNode, journal: Journal
) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(run.run_id, "wire")
    await node.runs.cancel(run.run_id)

    await node.effects.complete(run.run_id, effect.idempotency_key)

    entries = await read_all(journal, run.run_id)
    assert [entry.type for entry in entries] == ["running", "pending", "cancelled", "confirmed"]
    assert await journal.live_runs() == []


async def test_a_scope_that_is_missing_leaves_a_line_and_no_effect(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node, "1", "worker", "read")

    with pytest.raises(ScopeDenied):
        await node.effects.begin(run.run_id, "wire", scope="payments")
    with pytest.raises(ScopeDenied):
        await node.effects.begin(run.run_id, "wire", semantics=ONCE, dispatch_mode=DispatchMode.OUTBOX)

    assert await node.effects.list_all(run.run_id) == []
    policies = [entry for entry in await read_all(journal, run.run_id) if entry.kind == "policy"]
    assert [entry.payload["required_scope"] for entry in policies] == ["payments", ""]  # type: ignore[index,call-overload]


async def test_a_business_key_is_one_effect_in_all_runs(node: AsyncNode) -> None:
    one, other = await begin_run(node, "1"), await begin_run(node, "2")
    how = {"business_key": "invoice-7", "connector": "bank"}

    first = await node.effects.begin(one.run_id, "wire", **how)  # type: ignore[arg-type]
    second = await node.effects.begin(other.run_id, "wire", **how)  # type: ignore[arg-type]

    assert first == second and await node.effects.list_all(other.run_id) == []


async def test_rules_that_an_order_breaks_are_named(node: AsyncNode) -> None:
    run = await begin_run(node, "1", "worker", "payments")

    with pytest.raises(UsageError, match="NON_IDEMPOTENT effect requires dispatch mode OUTBOX"):
        await node.effects.begin(run.run_id, "wire", semantics=ONCE, scope="payments")
    with pytest.raises(UsageError, match="business_key requires a connector"):
        await node.effects.begin(run.run_id, "wire", business_key="k")


async def test_effects_in_doubt_are_the_unknown_and_the_old(node: AsyncNode) -> None:
    run = await begin_run(node)
    fresh = await node.effects.begin(run.run_id, "fresh")
    lost = await node.effects.begin(run.run_id, "lost")
    await node.effects.complete(run.run_id, lost.idempotency_key, EffectStatus.UNKNOWN)

    doubtful, all_open = await node.effects.in_doubt(older_than_ms=60_000), await node.effects.in_doubt()
    await node.effects.reconcile(run.run_id, lost.idempotency_key, EffectStatus.CONFIRMED, response="found")

    assert [each.tool for each in doubtful] == ["lost"]
    assert {each.idempotency_key for each in all_open} == {fresh.idempotency_key, lost.idempotency_key}
    assert [each.tool for each in await node.effects.in_doubt()] == ["fresh"]


async def test_a_dispatcher_that_is_silent_loses_what_can_be_repeated(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key

    first = await node.dispatch.claim(*place, "d1", SECOND)
    second = await node.dispatch.claim(*place, "d2", SECOND)
    third = await until(lambda: node.dispatch.claim(*place, "d2", SECOND), lambda claim: claim.is_acquired)

    assert first.is_acquired and second.effect.claim.owner == "d1"
    with pytest.raises(StaleClaim):
        await node.dispatch.attempt(*place, first.effect.claim.attempt, "late")
    assert third.effect.claim.attempt == first.effect.claim.attempt + 1


@pytest.mark.parametrize("semantics", [Semantics.IDEMPOTENT, ONCE])
@far_or_not
async def test_of_eight_dispatchers_one_gets_an_effect(backend: Backend, far: bool, semantics: Semantics) -> None:
    async with two_nodes(backend, far=far) as nodes:
        effect = await queue_effect(nodes[0], semantics)
        place = effect.run_id, effect.idempotency_key

        claims = await concurrently(8, lambda n: nodes[n % 2].dispatch.claim(*place, f"d{n}"))

    assert [claim.is_acquired for claim in claims].count(True) == 1
    assert len({claim.effect.claim.owner for claim in claims}) == 1


@far_or_not
async def test_of_two_runs_that_begin_one_business_at_once_one_does_it(backend: Backend, far: bool) -> None:
    async with two_nodes(backend, far=far) as nodes:
        runs = [await begin_run(nodes[0], str(n)) for n in range(6)]

        effects = await concurrently(
            6, lambda n: nodes[n % 2].effects.begin(runs[n].run_id, "wire", business_key="invoice", connector="bank")
        )

    assert len({effect.run_id for effect in effects}) == 1


async def test_what_cannot_be_repeated_is_offered_once(node: AsyncNode) -> None:
    effect = await queue_effect(node, ONCE)
    place = effect.run_id, effect.idempotency_key
    offered = await node.dispatch.due()
    claim = (await node.dispatch.claim(*place, "d1", SECOND)).effect.claim

    lost = await until(lambda: node.dispatch.mark_lost_in_doubt(), bool)

    assert [each.idempotency_key for each in offered] == [effect.idempotency_key]
    assert [each.status for each in lost] == [EffectStatus.UNKNOWN]
    assert await node.dispatch.due(now_ms=claim.expires_at_ms + 1_000_000) == []
    assert not (await node.dispatch.claim(*place, "d2")).is_acquired
    seen = await node.dispatch.observe(*place, Resolution.CONFIRMED, external_ref="bank-1")
    assert (seen.status, seen.external_ref) == (EffectStatus.CONFIRMED, "bank-1")


async def test_only_the_effects_of_a_connector_are_offered_for_it(node: AsyncNode) -> None:
    effect = await queue_effect(node)

    assert await node.dispatch.due("post") == []
    assert await node.dispatch.due("bank") == await node.dispatch.due() == [effect]


async def test_an_attempt_that_failed_comes_again_at_its_time(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    held = (await node.dispatch.claim(*place, "d1")).effect
    later = held.claim.expires_at_ms + 5_000

    tried = await node.dispatch.attempt(*place, held.claim.attempt, "busy", later)

    assert (tried.status, tried.dispatch_attempts) == (EffectStatus.PENDING, 1)
    assert await node.dispatch.due(now_ms=later - 1) == []
    assert [each.idempotency_key for each in await node.dispatch.due(now_ms=later)] == [effect.idempotency_key]


async def test_what_was_done_twice_is_undone_although_its_run_is_well(node: AsyncNode) -> None:
    effect = await queue_effect(node)

    await node.dispatch.observe(
        effect.run_id, effect.idempotency_key, Resolution.DUPLICATE, external_ref="bank-2",
        compensate_on_duplicate=Compensation(kind="refund"),
    )  # fmt: skip
    (owed,) = await node.obligations.due()

    assert (owed.kind, owed.external_ref) == ("refund", "bank-2")
    assert (await node.runs.get(effect.run_id)).status is RunStatus.RUNNING


async def test_every_outcome_has_its_subject(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    for status in (EffectStatus.CONFIRMED, EffectStatus.FAILED, EffectStatus.UNKNOWN):
        effect = await node.effects.begin(run.run_id, "execute sweep", key=status.value)
        await node.effects.complete(run.run_id, effect.idempotency_key, status)
    await node.effects.reconcile(run.run_id, "unknown", EffectStatus.FAILED)

    written = [subject for subject in await subjects(journal) if subject.startswith("/tape/effect/")]

    ends = f"execute%20sweep/{run.run_id}"
    assert {subject.removesuffix(ends) for subject in written} == {
        f"/tape/effect/{verb}/" for verb in ("pending", "confirmed", "failed", "unknown", "reconciled")
    }


async def test_a_run_that_went_well_has_its_decisions_and_effects_in_the_ledger(node: AsyncNode) -> None:
    run = await begin_run(node)
    for index, tool in enumerate(("sweep", "hedge", "post")):
        await node.decisions.record(run.run_id, index, model="m", response={"do": tool})
        effect = await node.effects.begin(run.run_id, tool, decision_index=index)
        await node.effects.complete(run.run_id, effect.idempotency_key, response={"ok": tool})
    await node.runs.end(run.run_id)

    decisions, effects = await node.decisions.list_all(run.run_id), await node.effects.list_all(run.run_id)

    assert [each.response_json for each in decisions] == [f'{{"do":"{tool}"}}' for tool in ("sweep", "hedge", "post")]
    assert {(each.decision_index, each.tool, each.status) for each in effects} == {
        (index, tool, EffectStatus.CONFIRMED) for index, tool in enumerate(("sweep", "hedge", "post"))
    }


async def test_who_can_be_repeated_needs_no_scope_and_who_cannot_is_admitted_with_one(node: AsyncNode) -> None:
    bare, granted = await begin_run(node, "1"), await begin_run(node, "2", "worker", "payments")

    repeated = await node.effects.begin(bare.run_id, "look")
    once = await node.effects.begin(
        granted.run_id, "wire", semantics=ONCE, dispatch_mode=DispatchMode.OUTBOX, scope="payments"
    )

    assert repeated.status is once.status is EffectStatus.PENDING


@pytest.mark.parametrize(
    ("semantics", "status", "is_due"),
    [(Semantics.IDEMPOTENT, EffectStatus.PENDING, True), (ONCE, EffectStatus.FAILED, False)],
)
async def test_what_is_absent_outside_is_due_again_only_if_it_may_be_repeated(
    node: AsyncNode, semantics: Semantics, status: EffectStatus, is_due: bool
) -> None:
    effect = await queue_effect(node, semantics)
    place = effect.run_id, effect.idempotency_key
    held = (await node.dispatch.claim(*place, "d1")).effect
    await node.dispatch.attempt(*place, held.claim.attempt, "no answer came")

    seen = await node.dispatch.observe(*place, Resolution.ABSENT)

    assert seen.status is status
    assert [each.idempotency_key for each in await node.dispatch.due()] == [effect.idempotency_key] * is_due


async def test_a_confirmed_effect_owes_its_inverse_with_the_reference_from_outside(node: AsyncNode) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(
        run.run_id,
        "wire",
        dispatch_mode=DispatchMode.OUTBOX,
        connector="bank",
        compensation=Compensation(kind="recall"),
    )

    await node.dispatch.observe(run.run_id, effect.idempotency_key, Resolution.CONFIRMED, external_ref="bank-7")

    (owed,) = await node.obligations.list_all(run.run_id)
    assert (owed.kind, owed.effect_key, owed.external_ref) == ("recall", effect.idempotency_key, "bank-7")
