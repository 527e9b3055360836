"""Effects: the intent before the act, the outcome once."""

from typing import Any

import pytest

from tape.core.effect import Compensation, DispatchMode, Effect, EffectSpec, EffectStatus, Semantics
from tape.core.errors import Conflict, NotReady, RunClosed, ScopeDenied, StaleClaim, UsageError
from tape.core.ids import RunId
from tape.core.run_state import RunState, RunStatus
from tape.runs import effects
from tape.runs.effects import EFFECTS
from tests.unit.runs.memory_ledgers import MemoryLedgers

ONCE: dict[str, Any] = {"semantics": Semantics.NON_IDEMPOTENT, "dispatch_mode": DispatchMode.OUTBOX}


def begin(
    ledgers: MemoryLedgers, run: RunState, tool: str = "wire", fence: int | None = None, **more: object
) -> Effect:
    order = EffectSpec(run_id=run.run_id, tool=tool, decision_index=0, **more)  # type: ignore[arg-type]
    return ledgers.write(effects.begin(ledgers.snapshot, order, fence))


def complete(ledgers: MemoryLedgers, effect: Effect, status: EffectStatus, response: str = "") -> Effect:
    place = effect.run_id, effect.idempotency_key
    return ledgers.write(effects.complete(ledgers.snapshot, place, status, response))


def test_beginning_twice_is_one_effect_that_is_still_pending() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()

    first, second = begin(ledgers, run), begin(ledgers, run)

    assert first == second and second.status is EffectStatus.PENDING
    assert first.idempotency_key == f"{run.run_id}/decision-0/wire/0"
    assert ledgers.verbs("effect") == ["pending"]


def test_completing_before_beginning_is_refused() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()

    with pytest.raises(NotReady, match="has not begun"):
        effects.complete(ledgers.snapshot, (run.run_id, "k"), EffectStatus.CONFIRMED)


def test_the_first_outcome_stays() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin())

    complete(ledgers, effect, EffectStatus.CONFIRMED, "paid")
    again = complete(ledgers, effect, EffectStatus.CONFIRMED, "paid")

    assert (again.status, again.response_json) == (EffectStatus.CONFIRMED, "paid")
    with pytest.raises(Conflict, match="stays"):
        complete(ledgers, effect, EffectStatus.FAILED, "no")
    assert ledgers.verbs("effect") == ["pending", "confirmed"]


@pytest.mark.parametrize("status", [EffectStatus.CONFIRMED, EffectStatus.FAILED, EffectStatus.UNKNOWN])
def test_each_outcome_is_an_entry_of_that_type(status: EffectStatus) -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin())

    complete(ledgers, effect, status)

    assert ledgers.events[-1].verb == status.value
    assert ledgers.events[-1].payload == {
        "tool": "wire",
        "idempotency_key": effect.idempotency_key,
        "status": status.value,
    }


def test_what_is_unknown_is_reconciled_once() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin())
    place = effect.run_id, effect.idempotency_key
    complete(ledgers, effect, EffectStatus.UNKNOWN)

    known = ledgers.write(effects.reconcile(ledgers.snapshot, place, EffectStatus.CONFIRMED, "found"))
    again = ledgers.write(effects.reconcile(ledgers.snapshot, place, EffectStatus.CONFIRMED, "found"))

    assert known == again and known.response_json == "found"
    with pytest.raises(Conflict, match="stays"):
        effects.reconcile(ledgers.snapshot, place, EffectStatus.FAILED)
    assert ledgers.verbs("effect") == ["pending", "unknown", "reconciled"]


def test_what_cannot_be_repeated_is_not_done_inline() -> None:
    with pytest.raises(UsageError, match="NON_IDEMPOTENT effect requires dispatch mode OUTBOX"):
        EffectSpec(run_id=RunId("r"), tool="wire", semantics=Semantics.NON_IDEMPOTENT)


def test_what_cannot_be_repeated_needs_a_scope() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin(scopes=("payments",))

    with pytest.raises(ScopeDenied, match="must name a scope"):
        begin(ledgers, run, **ONCE)
    assert begin(ledgers, run, scope="payments", **ONCE).status is EffectStatus.PENDING


def test_a_scope_that_the_run_lacks_is_denied_and_recorded() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin(scopes=("read",))

    with pytest.raises(ScopeDenied, match="'payments'"):
        begin(ledgers, run, scope="payments")

    assert [cell_id for cell_id in ledgers.cells if cell_id.ledger == "effect"] == []
    assert ledgers.verbs("policy") == ["denied"]
    assert ledgers.events[-1].payload == {
        "tool": "wire",
        "decision_index": 0,
        "required_scope": "payments",
        "granted_scopes": ["read"],
        "violation": "scope_missing",
    }


def test_an_idempotent_effect_needs_no_scope() -> None:
    ledgers = MemoryLedgers()

    assert begin(ledgers, ledgers.begin()).status is EffectStatus.PENDING


def test_a_business_key_is_one_effect_in_all_runs() -> None:
    ledgers = MemoryLedgers()
    one, other = ledgers.begin(name="1"), ledgers.begin(name="2")

    first = begin(ledgers, one, business_key="invoice-7", connector="bank")
    second = begin(ledgers, other, business_key="invoice-7", connector="bank")
    third = begin(ledgers, other, tool="post", business_key="invoice-7", connector="post")

    assert first == second and second.run_id == one.run_id
    assert third.run_id == other.run_id


def test_a_business_key_needs_a_connector() -> None:
    with pytest.raises(UsageError, match="business_key requires a connector"):
        EffectSpec(run_id=RunId("r"), tool="wire", business_key="k")


def test_no_intent_follows_the_end_of_a_run() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    order = EffectSpec(run_id=run.run_id, tool="wire")
    late = effects.begin(ledgers.snapshot, order)
    ledgers.end(run.run_id, RunStatus.CANCELLED)

    with pytest.raises(AssertionError, match="another version"):
        ledgers.write(late)
    with pytest.raises(RunClosed):
        effects.begin(ledgers.snapshot, order)


def test_what_was_under_way_when_its_run_ended_still_gets_its_outcome() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    effect = begin(ledgers, run)
    ledgers.end(run.run_id, RunStatus.CANCELLED)

    transition = effects.complete(ledgers.snapshot, (run.run_id, effect.idempotency_key), EffectStatus.CONFIRMED)

    assert transition.opens and transition.closes == run.run_id
    assert ledgers.write(transition).status is EffectStatus.CONFIRMED


def test_a_stale_worker_begins_and_completes_nothing() -> None:
    ledgers = MemoryLedgers()
    stale, run = ledgers.begin("w1"), ledgers.begin("w1")
    effect = begin(ledgers, run, fence=run.claim.attempt)
    place = run.run_id, effect.idempotency_key

    with pytest.raises(StaleClaim):
        begin(ledgers, run, "other", fence=stale.claim.attempt)
    with pytest.raises(StaleClaim):
        effects.complete(ledgers.snapshot, place, EffectStatus.CONFIRMED, fence=stale.claim.attempt)


def test_an_effect_that_can_be_undone_is_owed_as_soon_as_it_is_confirmed() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin(), compensation=Compensation(kind="refund", payload_json="7"))

    transition = effects.complete(ledgers.snapshot, (effect.run_id, effect.idempotency_key), EffectStatus.CONFIRMED)

    assert [change.id.ledger for change in transition.cells] == ["effect", "obligation", "debt"]
    assert [(event.kind, event.verb) for event in transition.events] == [
        ("effect", "confirmed"),
        ("obligation", "registered"),
    ]


@pytest.mark.parametrize("status", [EffectStatus.FAILED, EffectStatus.UNKNOWN])
def test_what_was_not_done_is_not_owed(status: EffectStatus) -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin(), compensation=Compensation(kind="refund"))

    complete(ledgers, effect, status)

    assert ledgers.verbs("obligation") == []


def test_an_inline_effect_is_listed_by_its_age_until_it_has_an_outcome() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ledgers.begin())
    cell_id = EFFECTS.at(effects.key_of(effect.run_id, effect.idempotency_key))
    pending = ledgers.cells[cell_id]

    complete(ledgers, effect, EffectStatus.CONFIRMED)

    assert (pending.status, pending.due_at_ms) == ("pending", ledgers.now_ms)
    assert (ledgers.cells[cell_id].status, ledgers.cells[cell_id].due_at_ms) == ("confirmed", None)
