"""Budgets in their ledger."""

from decimal import Decimal

import pytest

from tape.core.budget import Amount
from tape.core.errors import Conflict, KeyConflict
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.ledgers import begin_run, concurrently, two_nodes

pytestmark = needs_ledgers


async def test_what_would_be_over_the_cap_is_not_admitted(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.budgets.set(run.run_id, 1.0)
    await node.budgets.charge(run.run_id, 0.9)

    refused = await node.budgets.admit(run.run_id, 0.5)
    admitted = await node.budgets.admit(run.run_id, Decimal("0.1"))

    assert not refused.is_admitted and "over the cap" in refused.reason
    assert admitted.is_admitted and (await node.budgets.get(run.run_id)).reserved == Amount()


async def test_a_cap_of_nothing_is_not_the_same_as_none(node: AsyncNode) -> None:
    run = await begin_run(node)
    capped = await node.budgets.set(run.run_id, 0, 0)
    refused = await node.budgets.admit(run.run_id, 0, 1)
    free = await node.budgets.set(run.run_id)

    assert (capped.usd_cap_micros, capped.token_cap, refused.is_admitted) == (0, 0, False)
    assert (free.usd_cap_micros, free.token_cap) == (None, None)


async def test_those_who_reserve_at_once_do_not_overspend_together(backend: Backend) -> None:
    async with two_nodes(backend) as nodes:
        run = await begin_run(nodes[0])
        await nodes[0].budgets.set(run.run_id, 1.0, 100)

        admissions = await concurrently(16, lambda n: nodes[n % 2].budgets.reserve(run.run_id, f"r{n}", 0.3, 10))
        budget = await nodes[0].budgets.get(run.run_id)

        assert [each.is_admitted for each in admissions].count(True) == 3
        assert budget.reserved == Amount.of(0.9, 30)


async def test_a_reservation_is_settled_once(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.budgets.set(run.run_id, 1.0)
    await node.budgets.reserve(run.run_id, "call-1", 0.5)

    await node.budgets.settle(run.run_id, "call-1", 0.2)
    with pytest.raises(Conflict):
        await node.budgets.settle(run.run_id, "call-1", 0.5)
    budget = await node.budgets.settle(run.run_id, "call-1", 0.2)

    assert (budget.spent, budget.reserved) == (Amount.of(0.2), Amount())


async def test_a_charge_with_a_key_is_made_once(node: AsyncNode) -> None:
    run = await begin_run(node)

    first = await node.budgets.charge(run.run_id, 0.25, key="k")
    await node.budgets.charge(run.run_id, 0.5)
    again = await node.budgets.charge(run.run_id, 0.25, key="k")

    assert first == again and (await node.budgets.get(run.run_id)).spent == Amount.of(0.75)
    with pytest.raises(KeyConflict):
        await node.budgets.charge(run.run_id, 0.3, key="k")
