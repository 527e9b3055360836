"""Requests that contradict what is recorded are refused, in an ended run too, and what is recorded stays."""

from dataclasses import replace
from typing import Any

import pytest

from tape.bus.journal import Journal
from tape.core.effect import Compensation, DispatchMode, EffectStatus, Semantics
from tape.core.errors import Conflict, StaleClaim
from tape.core.run_state import RunStatus
from tape.operations.effects import BeginEffect, CompleteEffect, RecordDecision
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.ledgers import all_entries, begin_run

pytestmark = needs_ledgers

BODIES: dict[str, dict[str, str]] = {
    "effect.begin": {"request_json": "1"},
    "effect.complete": {"response_json": "1"},
    "decision.record": {"request_json": "1"},
}

OTHER: dict[str, dict[str, Any]] = {
    "effect.begin": {"tool": "post"},
    "effect.complete": {"status": EffectStatus.FAILED},
    "decision.record": {"model": "another"},
}


async def ended(node: AsyncNode, **bodies: str) -> dict[str, Any]:
    """The requests of a run that has ended, with these bodies or none."""
    run = await begin_run(node)
    requests: dict[str, Any] = {
        "effect.begin": BeginEffect(
            run_id=run.run_id, tool="wire", custom_key="k", request_json=bodies.get("request", "")
        ),
        "effect.complete": CompleteEffect(
            run_id=run.run_id, idempotency_key="k", status=EffectStatus.CONFIRMED,
            response_json=bodies.get("response", ""),
        ),
        "decision.record": RecordDecision(
            run_id=run.run_id, decision_index=0, request_json=bodies.get("request", "")
        ),
    }  # fmt: skip
    for request in requests.values():
        await node.call(request)
    await node.runs.end(run.run_id)
    return requests


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_was_empty_is_no_other_one_after_the_end_of_the_run(node: AsyncNode, name: str) -> None:
    request = (await ended(node))[name]

    with pytest.raises(Conflict):
        await node.call(replace(request, **BODIES[name]))

    assert await node.call(request)


@pytest.mark.parametrize("name", BODIES)
async def test_bodies_that_were_compacted_contradict_none(node: AsyncNode, name: str) -> None:
    request = (await ended(node, request="1", response="2"))[name]
    await node.runs.compact(request.run_id)

    assert await node.call(request)
    with pytest.raises(Conflict):
        await node.call(replace(request, **OTHER[name]))


WAY: dict[str, Any] = {"dispatch_mode": DispatchMode.OUTBOX, "connector": "bank", "scope": "payments", "app": "a"}


@pytest.mark.parametrize(
    "changed",
    [
        {"dispatch_mode": DispatchMode.INLINE},
        {"connector": "post"},
        {"scope": "refunds"},
        {"semantics": Semantics.NON_IDEMPOTENT},
        {"app": "other"},
        {"business_key": "invoice-8"},
        {"compensation": Compensation(kind="refund")},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_an_effect_is_not_begun_again_in_another_way_until_it_has_an_outcome(
    node: AsyncNode, journal: Journal, changed: dict[str, Any]
) -> None:
    run = await begin_run(node, "1", "worker", "payments", "refunds")
    first = BeginEffect(run_id=run.run_id, tool="wire", request_json="7", **WAY)
    begun = await node.call(first)
    before = await all_entries(journal)

    with pytest.raises(Conflict):
        await node.call(replace(first, **changed))

    assert await node.call(first) == begun and await all_entries(journal) == before
    done = await node.effects.complete(run.run_id, begun.idempotency_key, response=1)
    assert await node.call(replace(first, **changed)) == done


async def test_a_repeated_effect_need_not_name_its_compensation_again(node: AsyncNode) -> None:
    run = await begin_run(node)
    first = BeginEffect(run_id=run.run_id, tool="wire", compensation=Compensation(kind="refund"))
    begun = await node.call(first)

    assert await node.call(replace(first, compensation=None)) == begun
    with pytest.raises(Conflict):
        await node.call(replace(first, compensation=Compensation(kind="recall")))


@pytest.mark.parametrize("changed", [{"tool": "post"}, {"request_json": "8"}], ids=["tool", "request"])
async def test_a_business_key_stands_for_one_request(node: AsyncNode, changed: dict[str, Any]) -> None:
    one, other = await begin_run(node, "1"), await begin_run(node, "2")
    first = BeginEffect(run_id=one.run_id, tool="wire", request_json="7", business_key="invoice-7", connector="bank")
    begun = await node.call(first)

    with pytest.raises(Conflict, match="invoice-7"):
        await node.call(replace(first, run_id=other.run_id, **changed))

    assert await node.call(replace(first, run_id=other.run_id)) == begun


async def test_a_business_key_stands_for_its_request_after_the_run_was_compacted(node: AsyncNode) -> None:
    one, other = await begin_run(node, "1"), await begin_run(node, "2")
    first = BeginEffect(run_id=one.run_id, tool="wire", request_json="7", business_key="invoice-7", connector="bank")
    begun = await node.call(first)
    await node.effects.complete(one.run_id, begun.idempotency_key)
    await node.runs.end(one.run_id)
    await node.runs.compact(one.run_id)

    served = await node.call(replace(first, run_id=other.run_id))

    assert (served.run_id, served.status) == (one.run_id, EffectStatus.CONFIRMED)
    with pytest.raises(Conflict):
        await node.call(replace(first, run_id=other.run_id, tool="post"))


async def test_a_doubt_keeps_its_reason(node: AsyncNode) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(run.run_id, "wire")
    doubt = {"status": EffectStatus.UNKNOWN, "error": "no answer came"}
    unknown = await node.effects.complete(run.run_id, effect.idempotency_key, **doubt)  # type: ignore[arg-type]

    with pytest.raises(Conflict):
        await node.effects.complete(run.run_id, effect.idempotency_key, EffectStatus.UNKNOWN, error="another")

    assert await node.effects.complete(run.run_id, effect.idempotency_key, **doubt) == unknown  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [RunStatus.COMPENSATING, RunStatus.STUCK])
async def test_an_end_that_is_not_final_keeps_its_detail(node: AsyncNode, status: RunStatus) -> None:
    run = await begin_run(node)
    first = await node.runs.end(run.run_id, status, "one")

    with pytest.raises(Conflict):
        await node.runs.end(run.run_id, status, "another")

    assert await node.runs.end(run.run_id, status, "one") == first
    assert (await node.runs.end(run.run_id, RunStatus.FAILED, "another")).status is RunStatus.FAILED


async def test_a_cancelled_timer_is_not_fired(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.timers.set(run.run_id, "t", 1)
    held = (await node.timers.claim(run.run_id, "t", "worker")).timer
    await node.timers.cancel(run.run_id, "t")

    with pytest.raises(StaleClaim, match="cancelled"):
        await node.timers.fire(run.run_id, "t", held.claim.attempt)
