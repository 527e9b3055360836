"""Repeated writes: an exact repeat answers as the first call did, and one that says something else is refused."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tape.bus.journal import Journal
from tape.core.effect import DispatchMode, EffectStatus, Resolution
from tape.core.errors import Conflict
from tape.core.ids import RunId
from tape.core.obligation import ObligationStatus
from tape.core.ports import Store
from tape.core.run_state import Invocation, RunStatus
from tape.core.session import SessionEvent, SessionId
from tape.operations.budgets import ChargeBudget, ReserveBudget, SettleBudget
from tape.operations.catalogue import OPERATIONS
from tape.operations.effects import (
    BeginEffect,
    ClaimEffectDispatch,
    CompleteEffect,
    ReconcileEffect,
    RecordDecision,
    RecordDispatchAttempt,
    RecordExternalObservation,
)
from tape.operations.gates import ClaimTimer, FireTimer, SendSignal, SetTimer
from tape.operations.ledgers import Ledgers
from tape.operations.obligations import (
    ClaimObligation,
    RecordObligationAttempt,
    RegisterCompensation,
    ResolveObligation,
)
from tape.operations.operation import Access, OperationRequest, Repeat
from tape.operations.runs import BeginRun, EndRun
from tape.operations.values import AppendEvent, CreateSession, DeleteValue, WriteValue
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.ledgers import RemoteLedgers
from tests.contract.backends import needs_ledgers
from tests.contract.ledgers import all_entries
from tests.contract.serving import served

Pair = tuple[OperationRequest[Any], OperationRequest[Any]]
LATER_MS = 1 << 50

NOTHING_TO_CONTRADICT = {
    "run.close": "it has no arguments; a closed run stays as it is",
    "run.cancel": "the reason is a note for people, and a run that has ended stays as it is",
    "run.reap": "it has no arguments; a reaped run stays as it is",
    "run.compact": "it has no arguments; a repetition answers that the run was already compacted",
    "effect.retry": "it has no arguments; one that is already due again stays so",
    "obligation.retry": "it has no arguments; one that is already due again stays so",
    "timer.cancel": "it has no arguments; a repetition answers that there was nothing to cancel",
    "gate.wait": "the context is a note for people, and a function that runs again may word it anew",
    "outbox.partition": "it has no arguments; partitions that exist stay as they are",
    "budget.set": "it sets: the newest caps count",
    "reaction.register": "it registers: the newest definition counts",
    "reaction.pause": "the reason is a note for people, and a paused reaction stays paused",
    "reaction.resume": "it has no arguments; one that is not paused stays so",
    "reaction.remove": "it has no arguments; a repetition answers that there was nothing to remove",
    "task.complete": "tests/contract/test_tasks.py has it: owner and attempt are the request",
    "task.nack": "tests/contract/test_tasks.py has it: owner and attempt are the request",
    "session.create": "it finds or creates: the state is for a new session only, and later events have changed it",
    "session.delete": "it has no arguments; a repetition answers that there was nothing to delete",
}


@pytest.fixture(params=["embedded", "grpc"])
async def ledgers(request: pytest.FixtureRequest, store: Store, journal: Journal) -> AsyncIterator[Ledgers]:
    if request.param == "embedded":
        yield LocalLedgers(store, journal)
        return
    async with served(store, journal) as url, Channel(url) as channel:
        yield RemoteLedgers(channel)


async def run_of(ledgers: Ledgers) -> RunId:
    of = Invocation(app="treasury", user="ann", session="s", invocation="1")
    begun = await ledgers.call(BeginRun(of=of, owner="worker"))
    return begun.run.run_id


async def effect_of(ledgers: Ledgers, **more: Any) -> dict[str, Any]:
    run = await run_of(ledgers)
    begun = await ledgers.call(BeginEffect(run_id=run, tool="wire", request_json="7", **more))
    return {"run_id": run, "idempotency_key": begun.idempotency_key}


async def claimed_effect(ledgers: Ledgers) -> dict[str, Any]:
    names = await effect_of(ledgers, dispatch_mode=DispatchMode.OUTBOX, connector="bank")
    await ledgers.call(ClaimEffectDispatch(**names, owner="worker"))
    return names


async def claimed_obligation(ledgers: Ledgers) -> dict[str, Any]:
    run = await run_of(ledgers)
    owed = await ledgers.call(RegisterCompensation(run_id=run, effect_key="e", kind="refund"))
    await ledgers.call(EndRun(run_id=run, status=RunStatus.FAILED))
    await ledgers.call(ClaimObligation(run_id=run, number=owed.number, owner="worker"))
    return {"run_id": run, "number": owed.number}


async def decision_record(ledgers: Ledgers) -> Pair:
    first = RecordDecision(run_id=await run_of(ledgers), decision_index=0, response_json='"yes"')
    return first, replace(first, request_json='"another"')


async def run_end(ledgers: Ledgers) -> Pair:
    first = EndRun(run_id=await run_of(ledgers), status=RunStatus.TERMINAL, detail_json='"done"')
    return first, replace(first, status=RunStatus.FAILED)


async def effect_begin(ledgers: Ledgers) -> Pair:
    first = BeginEffect(run_id=await run_of(ledgers), tool="wire", request_json="7")
    return first, replace(first, request_json="8")


async def effect_complete(ledgers: Ledgers) -> Pair:
    first = CompleteEffect(**await effect_of(ledgers), status=EffectStatus.CONFIRMED, response_json="1")
    return first, replace(first, response_json="2")


async def effect_reconcile(ledgers: Ledgers) -> Pair:
    names = await effect_of(ledgers)
    await ledgers.call(CompleteEffect(**names, status=EffectStatus.UNKNOWN))
    first = ReconcileEffect(**names, status=EffectStatus.CONFIRMED, response_json="1")
    return first, replace(first, status=EffectStatus.FAILED, response_json="")


async def effect_attempt(ledgers: Ledgers) -> Pair:
    names = await claimed_effect(ledgers)
    first = RecordDispatchAttempt(**names, attempt=1, error="no route", next_dispatch_at_ms=LATER_MS)
    return first, replace(first, error="refused")


async def effect_observe(ledgers: Ledgers) -> Pair:
    first = RecordExternalObservation(
        **await claimed_effect(ledgers), resolution=Resolution.CONFIRMED, response_json="1"
    )
    return first, replace(first, resolution=Resolution.FAILED, response_json="")


async def obligation_register(ledgers: Ledgers) -> Pair:
    first = RegisterCompensation(run_id=await run_of(ledgers), effect_key="e", kind="refund", payload_json="1")
    return first, replace(first, payload_json="2")


async def obligation_attempt(ledgers: Ledgers) -> Pair:
    names = await claimed_obligation(ledgers)
    first = RecordObligationAttempt(**names, attempt=1, error="no route", next_attempt_at_ms=LATER_MS)
    return first, replace(first, error="refused")


async def obligation_resolve(ledgers: Ledgers) -> Pair:
    names = await claimed_obligation(ledgers)
    first = ResolveObligation(**names, status=ObligationStatus.COMPENSATED, result_json="1", attempt=1)
    return first, replace(first, result_json="2")


async def gate_send(ledgers: Ledgers) -> Pair:
    first = SendSignal(run_id=await run_of(ledgers), gate="g", resolution_json="1", key="k")
    return first, replace(first, resolution_json="2")


async def timer_fire(ledgers: Ledgers) -> Pair:
    names: dict[str, Any] = {"run_id": await run_of(ledgers), "timer_id": "t"}
    await ledgers.call(SetTimer(**names, fire_at_ms=1))
    await ledgers.call(ClaimTimer(**names, owner="worker"))
    first = FireTimer(**names, attempt=1)
    return first, replace(first, attempt=2)


async def budget_reserve(ledgers: Ledgers) -> Pair:
    first = ReserveBudget(run_id=await run_of(ledgers), reservation_id="r", usd=1)
    return first, replace(first, usd=2)


async def budget_settle(ledgers: Ledgers) -> Pair:
    run = await run_of(ledgers)
    await ledgers.call(ReserveBudget(run_id=run, reservation_id="r", usd=3))
    first = SettleBudget(run_id=run, reservation_id="r", usd=1)
    return first, replace(first, usd=2)


async def budget_charge(ledgers: Ledgers) -> Pair:
    first = ChargeBudget(run_id=await run_of(ledgers), usd=1, key="k")
    return first, replace(first, usd=2)


async def value_write(ledgers: Ledgers) -> Pair:
    first = WriteValue(namespace="n", key="k", value_json="1", call_key="c")
    return first, replace(first, value_json="2")


async def value_delete(ledgers: Ledgers) -> Pair:
    await ledgers.call(WriteValue(namespace="n", key="k", value_json="1"))
    first = DeleteValue(namespace="n", key="k", call_key="c")
    return first, replace(first, writer="bob")


async def session_append(ledgers: Ledgers) -> Pair:
    of = SessionId(app="chat", user="ann", session="s")
    await ledgers.call(CreateSession(app="chat", user="ann", session="s"))
    first = AppendEvent(of=of, event=SessionEvent(id="e", content_json="1"))
    return first, replace(first, event=SessionEvent(id="e", content_json="2"))


CASES: dict[str, Callable[[Ledgers], Awaitable[Pair]]] = {
    each.__name__.replace("_", ".", 1): each
    for each in (
        decision_record, run_end, effect_begin, effect_complete, effect_reconcile, effect_attempt, effect_observe,
        obligation_register, obligation_attempt, obligation_resolve, gate_send, timer_fire, budget_reserve,
        budget_settle, budget_charge, value_write, value_delete, session_append,
    )
}  # fmt: skip


@needs_ledgers
@pytest.mark.parametrize("name", CASES)
async def test_an_exact_repeat_answers_as_the_first_call_did_and_another_is_refused(
    ledgers: Ledgers, journal: Journal, name: str
) -> None:
    request, other = await CASES[name](ledgers)

    first = await ledgers.call(request)
    before = await all_entries(journal)
    again = await ledgers.call(request)
    with pytest.raises(Conflict):
        await ledgers.call(other)

    assert again == first == await ledgers.call(request)
    assert await all_entries(journal) == before


@needs_ledgers
async def test_a_run_that_is_begun_again_with_an_owner_is_a_new_attempt(ledgers: Ledgers) -> None:
    of = Invocation(app="treasury", user="ann", session="s", invocation="1")

    claims = [await ledgers.call(BeginRun(of=of, owner=owner)) for owner in ("worker", "worker", "")]

    assert [each.run.claim.attempt for each in claims] == [1, 2, 2]
    assert [each.is_acquired for each in claims] == [True, True, False]


@needs_ledgers
async def test_a_session_and_an_event_without_a_name_are_new_each_time(ledgers: Ledgers) -> None:
    node = AsyncNode(ledgers)
    one, other = [await node.sessions.create("chat", "ann") for _ in range(2)]

    again = [await node.sessions.append("chat", "ann", one.of.session, "hi") for _ in range(2)]

    assert one.of != other.of and [each.event_count for each in again] == [1, 2]


def test_every_write_that_may_be_repeated_is_here_or_has_nothing_to_contradict() -> None:
    repeatable = {
        each.name for each in OPERATIONS if each.access is Access.WRITE and each.repeat in (Repeat.SAME, Repeat.KEYED)
    }

    assert repeatable == {*CASES, *NOTHING_TO_CONTRADICT}
