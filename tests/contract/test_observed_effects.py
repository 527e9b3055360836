"""What a check outside shows about an effect: it takes nothing from a dispatcher, and what happened twice is undone."""

from dataclasses import replace
from typing import Any

import pytest

from tape.bus.journal import Journal
from tape.core.effect import Compensation, Effect, EffectStatus, Resolution, Semantics
from tape.core.errors import Conflict, UsageError
from tape.core.fork_policy import EffectPolicy
from tape.core.ports import Store
from tape.core.run_state import RunStatus
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.events import read_all
from tests.contract.ledgers import all_entries, begin_run, queue_effect

pytestmark = needs_ledgers

REFUND = Compensation(kind="refund", payload_json="7")
without_outcome = pytest.mark.parametrize("resolution", [Resolution.ABSENT, Resolution.STUCK])


async def doubtful(node: AsyncNode, semantics: Semantics = Semantics.IDEMPOTENT) -> tuple[str, str]:
    """An effect whose first dispatcher got no answer."""
    effect = await queue_effect(node, semantics)
    place = effect.run_id, effect.idempotency_key
    held = (await node.dispatch.claim(*place, "d0")).effect
    await node.dispatch.attempt(*place, held.claim.attempt, "no answer came")
    return place


async def owed_by(node: AsyncNode, effect: Effect) -> list[tuple[str, str]]:
    return [(owed.kind, owed.external_ref) for owed in await node.obligations.list_all(effect.run_id)]


@without_outcome
async def test_a_check_that_is_recorded_twice_adds_one_entry(
    node: AsyncNode, journal: Journal, resolution: Resolution
) -> None:
    place = await doubtful(node)

    first = await node.dispatch.observe(*place, resolution, external_ref="bank-1", error="not there")
    before = await all_entries(journal)
    again = await node.dispatch.observe(*place, resolution, external_ref="bank-1", error="not there")

    assert again == first and await all_entries(journal) == before


@without_outcome
@pytest.mark.parametrize("semantics", [Semantics.IDEMPOTENT, Semantics.NON_IDEMPOTENT])
async def test_a_check_without_an_outcome_takes_nothing_from_a_dispatcher(
    node: AsyncNode, journal: Journal, resolution: Resolution, semantics: Semantics
) -> None:
    effect = await queue_effect(node, semantics)
    place = effect.run_id, effect.idempotency_key
    held = (await node.dispatch.claim(*place, "d1")).effect
    before = await all_entries(journal)

    seen = await node.dispatch.observe(*place, resolution)
    other = await node.dispatch.claim(*place, "d2")

    assert not other.is_acquired and seen == held == other.effect
    assert await all_entries(journal) == before


async def test_a_repeated_absence_leaves_the_next_dispatcher_its_claim(node: AsyncNode) -> None:
    place = await doubtful(node)
    await node.dispatch.observe(*place, Resolution.ABSENT)
    held = (await node.dispatch.claim(*place, "d1")).effect

    await node.dispatch.observe(*place, Resolution.ABSENT)

    assert (await node.dispatch.claim(*place, "d2")).effect == held


async def test_a_repeated_absence_leaves_a_dispatcher_its_next_time(node: AsyncNode) -> None:
    place = await doubtful(node)
    await node.dispatch.observe(*place, Resolution.ABSENT)
    held = (await node.dispatch.claim(*place, "d1")).effect
    tried = await node.dispatch.attempt(*place, held.claim.attempt, "busy", held.claim.expires_at_ms)

    assert await node.dispatch.observe(*place, Resolution.ABSENT) == tried


async def test_a_duplicate_that_is_found_after_the_outcome_is_undone(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    confirmed = await node.dispatch.observe(*place, Resolution.CONFIRMED, external_ref="bank-1")

    how: dict[str, Any] = {"external_ref": "bank-2", "compensate_on_duplicate": REFUND}

    found, again = [await node.dispatch.observe(*place, Resolution.DUPLICATE, **how) for _ in range(2)]
    (owed,) = await node.obligations.due()

    assert found == again == confirmed and (owed.kind, owed.external_ref, owed.payload_json) == (
        "refund",
        "bank-2",
        "7",
    )
    assert await owed_by(node, effect) == [("refund", "bank-2")]


async def test_a_duplicate_that_is_found_after_the_end_of_the_run_is_undone(node: AsyncNode, journal: Journal) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    await node.dispatch.observe(*place, Resolution.CONFIRMED)
    await node.runs.end(effect.run_id, RunStatus.TERMINAL)

    await node.dispatch.observe(*place, Resolution.DUPLICATE, compensate_on_duplicate=REFUND)
    (owed,) = await node.obligations.due()
    held = (await node.obligations.claim(effect.run_id, owed.number, "w")).obligation
    await node.obligations.resolve(effect.run_id, owed.number, attempt=held.claim.attempt)

    entries = await read_all(journal, effect.run_id)
    assert [entry.type for entry in entries][-3:] == ["registered", "committed", "compensated"]
    assert await journal.live_runs() == []


@pytest.mark.parametrize("is_confirmed_first", [True, False])
@pytest.mark.parametrize(
    "changed",
    [{"kind": "recall"}, {"payload_json": "8"}, {"compensator_ref": "bank:undo"}, {"max_attempts": 2}, {"app": "b"}],
)
async def test_another_way_to_undo_a_duplicate_is_refused(
    node: AsyncNode, changed: dict[str, Any], is_confirmed_first: bool
) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    if is_confirmed_first:
        await node.dispatch.observe(*place, Resolution.CONFIRMED)
    await node.dispatch.observe(*place, Resolution.DUPLICATE, compensate_on_duplicate=REFUND)

    with pytest.raises(Conflict):
        await node.dispatch.observe(*place, Resolution.DUPLICATE, compensate_on_duplicate=replace(REFUND, **changed))

    assert await owed_by(node, effect) == [("refund", "")]


async def test_a_second_duplicate_is_refused(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    how: dict[str, Any] = {"compensate_on_duplicate": REFUND}
    await node.dispatch.observe(*place, Resolution.CONFIRMED, external_ref="bank-1")
    await node.dispatch.observe(*place, Resolution.DUPLICATE, external_ref="bank-2", **how)

    with pytest.raises(Conflict):
        await node.dispatch.observe(*place, Resolution.DUPLICATE, external_ref="bank-3", **how)


async def test_a_duplicate_is_undone_beside_the_effect_although_both_are_of_one_kind(node: AsyncNode) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(run.run_id, "wire", compensation=REFUND)

    await node.dispatch.observe(
        run.run_id, effect.idempotency_key, Resolution.DUPLICATE, external_ref="bank-2", compensate_on_duplicate=REFUND
    )

    assert await owed_by(node, effect) == [("refund", "bank-2")] * 2
    assert [owed.number for owed in await node.obligations.due()] == [2]


async def test_what_failed_did_not_happen_twice(node: AsyncNode) -> None:
    effect = await queue_effect(node)
    place = effect.run_id, effect.idempotency_key
    await node.dispatch.observe(*place, Resolution.FAILED)

    with pytest.raises(Conflict):
        await node.dispatch.observe(*place, Resolution.DUPLICATE, compensate_on_duplicate=REFUND)

    assert await owed_by(node, effect) == []


async def test_a_fork_that_does_nothing_outside_undoes_no_duplicate(
    store: Store, journal: Journal, node: AsyncNode
) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(run.run_id, "wire")
    await node.effects.complete(run.run_id, effect.idempotency_key, EffectStatus.CONFIRMED)
    (forked, *_) = await LocalLedgers(store, journal).fork(run.run_id, 3, EffectPolicy.REPLAY)
    (inherited,) = await node.effects.list_all(forked.run_id)

    with pytest.raises(UsageError):
        await node.dispatch.observe(
            forked.run_id, inherited.idempotency_key, Resolution.DUPLICATE, compensate_on_duplicate=REFUND
        )

    assert await owed_by(node, inherited) == []
