"""Claims and outcomes of effects in the outbox."""

from datetime import timedelta

import pytest

from tape.core.claim import WORK_LEASE
from tape.core.effect import (
    Compensation,
    DispatchMode,
    Effect,
    EffectClaim,
    EffectSpec,
    EffectStatus,
    Observation,
    Resolution,
    Semantics,
)
from tape.core.errors import StaleClaim, UsageError
from tape.core.run_state import RunStatus
from tape.runs import compensation, dispatch, effects
from tape.runs.effects import EFFECTS
from tests.unit.runs.memory_ledgers import MINUTE, MemoryLedgers

OUTBOX = DispatchMode.OUTBOX
ONCE = Semantics.NON_IDEMPOTENT


def begin(ledgers: MemoryLedgers, semantics: Semantics = Semantics.IDEMPOTENT, **more: object) -> Effect:
    run = ledgers.begin(scopes=("payments",))
    how = {"dispatch_mode": OUTBOX, "scope": "payments", **more}
    order = EffectSpec(run_id=run.run_id, tool="wire", semantics=semantics, **how)  # type: ignore[arg-type]
    return ledgers.write(effects.begin(ledgers.snapshot, order))


def place(effect: Effect) -> effects.EffectId:
    return effect.run_id, effect.idempotency_key


def claim(ledgers: MemoryLedgers, effect: Effect, owner: str = "d1") -> EffectClaim:
    return ledgers.write(dispatch.claim(ledgers.snapshot, place(effect), owner, WORK_LEASE))


def listed(ledgers: MemoryLedgers, effect: Effect) -> tuple[str, int | None]:
    cell = ledgers.cells[EFFECTS.at(effects.key_of(*place(effect)))]
    return cell.status, cell.due_at_ms


def observe(ledgers: MemoryLedgers, effect: Effect, resolution: Resolution, **more: object) -> Effect:
    seen = Observation(resolution=resolution, **more)  # type: ignore[arg-type]
    return ledgers.write(dispatch.observe(ledgers.snapshot, place(effect), seen))


def test_of_two_dispatchers_one_gets_it_and_the_other_sees_who() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)

    first, second = claim(ledgers, effect, "d1"), claim(ledgers, effect, "d2")

    assert (first.is_acquired, second.is_acquired) == (True, False)
    assert second.effect.claim.owner == "d1"


def test_what_can_be_repeated_is_offered_again_after_a_silence() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    claim(ledgers, effect, "d1")

    ledgers.passes(WORK_LEASE)

    assert listed(ledgers, effect) == ("outbox", ledgers.now_ms)
    assert claim(ledgers, effect, "d2").is_acquired


def test_what_cannot_be_repeated_is_in_doubt_after_a_silence_and_never_offered_again() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ONCE)
    claim(ledgers, effect, "d1")

    assert listed(ledgers, effect)[0] == "in_flight"
    ledgers.passes(WORK_LEASE)
    late = claim(ledgers, effect, "d2")

    assert not late.is_acquired and late.effect.status is EffectStatus.UNKNOWN
    assert listed(ledgers, effect)[0] == "unknown" and not claim(ledgers, effect, "d2").is_acquired
    assert ledgers.verbs("effect") == ["pending", "claimed", "unknown"]


def test_putting_in_doubt_leaves_alone_what_somebody_has() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ONCE)
    claim(ledgers, effect)

    assert ledgers.write(dispatch.mark_in_doubt(ledgers.snapshot, place(effect))).status is EffectStatus.PENDING


def test_an_attempt_that_failed_is_due_again_at_its_time() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    held = claim(ledgers, effect).effect

    tried = ledgers.write(
        dispatch.attempt(ledgers.snapshot, place(effect), held.claim.attempt, "busy", ledgers.now_ms + 500)
    )

    assert (tried.status, tried.dispatch_attempts, tried.claim.owner) == (EffectStatus.PENDING, 1, "")
    assert not claim(ledgers, effect).is_acquired
    ledgers.passes(timedelta(milliseconds=500))
    assert claim(ledgers, effect).is_acquired


def test_an_attempt_without_a_next_time_is_unknown_until_somebody_looks() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, ONCE)
    held = claim(ledgers, effect).effect

    lost = ledgers.write(dispatch.attempt(ledgers.snapshot, place(effect), held.claim.attempt, "cut off", 0))
    refused = claim(ledgers, effect)
    seen = observe(ledgers, effect, Resolution.CONFIRMED, external_ref="bank-1")

    assert lost.status is EffectStatus.UNKNOWN and not refused.is_acquired
    assert (seen.status, seen.external_ref) == (EffectStatus.CONFIRMED, "bank-1")


def test_a_stale_dispatcher_reports_nothing() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    stale = claim(ledgers, effect, "d1").effect.claim.attempt
    ledgers.passes(WORK_LEASE)
    claim(ledgers, effect, "d1")

    with pytest.raises(StaleClaim):
        dispatch.attempt(ledgers.snapshot, place(effect), stale, "late", 0)


@pytest.mark.parametrize(
    ("semantics", "status"), [(Semantics.IDEMPOTENT, EffectStatus.PENDING), (ONCE, EffectStatus.FAILED)]
)
def test_what_is_absent_outside_is_tried_again_only_if_it_may_be(semantics: Semantics, status: EffectStatus) -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, semantics)
    held = claim(ledgers, effect).effect
    ledgers.write(dispatch.attempt(ledgers.snapshot, place(effect), held.claim.attempt, "cut off", 0))

    assert observe(ledgers, effect, Resolution.ABSENT).status is status
    assert listed(ledgers, effect) == (
        ("outbox", ledgers.now_ms) if status is EffectStatus.PENDING else ("failed", None)
    )


def test_what_was_done_twice_is_confirmed_and_undone_once_although_its_run_is_well() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    how = Compensation(kind="refund")

    seen = observe(ledgers, effect, Resolution.DUPLICATE, external_ref="bank-2", compensate_on_duplicate=how)
    observe(ledgers, effect, Resolution.DUPLICATE, external_ref="bank-2", compensate_on_duplicate=how)
    owed = compensation.first(ledgers.snapshot, effect.run_id)

    assert seen.status is EffectStatus.CONFIRMED and ledgers.verbs("obligation") == ["registered"]
    assert owed is not None and (owed.kind, owed.external_ref, owed.at_once) == ("refund", "bank-2", True)


def test_a_duplicate_of_what_can_be_undone_owes_both() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, compensation=Compensation(kind="cancel"))

    observe(ledgers, effect, Resolution.DUPLICATE, compensate_on_duplicate=Compensation(kind="refund"))

    assert ledgers.verbs("obligation") == ["registered", "registered"]


def test_a_confirmed_effect_owes_under_its_inverse_with_the_reference_from_outside() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers, compensation=Compensation(kind="cancel_wire", compensator_ref="bank:cancel"))

    observe(ledgers, effect, Resolution.CONFIRMED, external_ref="bank-3")
    obligation = compensation.numbered(ledgers.snapshot, effect.run_id, 1)

    assert (obligation.kind, obligation.external_ref) == ("cancel_wire", "bank-3")
    assert obligation.compensator_ref == "bank:cancel"


def test_what_nobody_knows_stays_unknown() -> None:
    ledgers = MemoryLedgers()

    assert observe(ledgers, begin(ledgers), Resolution.STUCK).status is EffectStatus.UNKNOWN


def test_a_failed_run_does_nothing_more() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    ledgers.end(effect.run_id, RunStatus.CANCELLED)

    refused = claim(ledgers, effect)

    assert not refused.is_acquired and refused.effect.status is EffectStatus.FAILED


def test_what_a_terminal_run_left_in_the_outbox_is_still_done() -> None:
    ledgers = MemoryLedgers()
    effect = begin(ledgers)
    ledgers.end(effect.run_id, RunStatus.TERMINAL)

    assert claim(ledgers, effect).is_acquired


def test_nobody_dispatches_what_its_run_does_itself() -> None:
    ledgers = MemoryLedgers()
    order = EffectSpec(run_id=ledgers.begin().run_id, tool="wire")
    effect = ledgers.write(effects.begin(ledgers.snapshot, order))

    with pytest.raises(UsageError, match="inline"):
        dispatch.claim(ledgers.snapshot, place(effect), "d", MINUTE)
