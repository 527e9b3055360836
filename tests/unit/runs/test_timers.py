"""Timers: handled at least once."""

from datetime import timedelta

import pytest

from tape.core.claim import WORK_LEASE
from tape.core.errors import JsonLimit, RunClosed, StaleClaim
from tape.core.ids import RunId
from tape.core.run_state import RunStatus
from tape.core.timer import GATE_TIMEOUT, Timer, TimerClaim, TimerStatus
from tape.runs import gates, lifecycle, timers
from tape.runs.timers import TIMERS
from tests.unit.runs.memory_ledgers import MemoryLedgers

SECOND = timedelta(seconds=1)


def arm(ledgers: MemoryLedgers, run_id: RunId, kind: str = "", payload: str = "", name: str = "t") -> Timer:
    timer = Timer(run_id=run_id, timer_id=name, fire_at_ms=ledgers.now_ms + 1000, kind=kind, payload_json=payload)
    return ledgers.write(timers.arm(ledgers.snapshot, timer))


def claim(ledgers: MemoryLedgers, run_id: RunId, owner: str = "h1") -> TimerClaim:
    return ledgers.write(timers.claim(ledgers.snapshot, run_id, "t", owner, WORK_LEASE))


def fire(ledgers: MemoryLedgers, held: TimerClaim) -> Timer:
    return ledgers.write(timers.fire(ledgers.snapshot, held.timer.run_id, "t", held.timer.claim.attempt))


def listed(ledgers: MemoryLedgers, run_id: RunId) -> tuple[str, int | None]:
    cell = ledgers.cells[TIMERS.at(timers.key_of(run_id, "t"))]
    return cell.status, cell.due_at_ms


def test_a_timer_is_due_at_its_time() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    timer = arm(ledgers, run_id)

    early = claim(ledgers, run_id)
    ledgers.passes(SECOND)

    assert listed(ledgers, run_id) == ("set", timer.fire_at_ms)
    assert (early.is_acquired, claim(ledgers, run_id).is_acquired) == (False, True)


def test_a_timer_whose_handler_is_lost_is_due_again() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id)
    ledgers.passes(SECOND)
    lost = claim(ledgers, run_id)

    assert not claim(ledgers, run_id, "h2").is_acquired
    ledgers.passes(WORK_LEASE)
    held = claim(ledgers, run_id, "h2")

    assert held.is_acquired
    with pytest.raises(StaleClaim):
        fire(ledgers, lost)


def test_what_has_fired_is_not_due() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id)
    ledgers.passes(SECOND)
    held = claim(ledgers, run_id)

    fire(ledgers, held), fire(ledgers, held)

    assert listed(ledgers, run_id) == ("fired", None)
    assert ledgers.verbs("timer") == ["set", "fired"]


def test_setting_it_again_arms_it_again() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    first = arm(ledgers, run_id)

    same = ledgers.write(timers.arm(ledgers.snapshot, first))
    ledgers.passes(SECOND)
    fire(ledgers, claim(ledgers, run_id))
    later = arm(ledgers, run_id)

    assert same == first and later.status is TimerStatus.SET
    assert ledgers.verbs("timer") == ["set", "fired", "set"]


def test_a_timer_that_was_cancelled_does_not_fire() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id)

    first = ledgers.write(timers.cancel(ledgers.snapshot, run_id, "t"))
    second = ledgers.write(timers.cancel(ledgers.snapshot, run_id, "t"))
    ledgers.passes(SECOND)

    assert (first, second) == (True, False)
    assert not claim(ledgers, run_id).is_acquired


def test_a_run_that_has_ended_needs_no_timer() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id)
    ledgers.end(run_id, RunStatus.CANCELLED)
    ledgers.passes(SECOND)

    late = claim(ledgers, run_id)

    assert not late.is_acquired and late.timer.status is TimerStatus.CANCELLED
    with pytest.raises(RunClosed):
        arm(ledgers, run_id)


def test_a_timeout_ends_the_wait_at_its_gate_in_the_same_step() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id, GATE_TIMEOUT, '{"gate":"approval","note":7}')
    ledgers.write(gates.wait(ledgers.snapshot, run_id, "approval"))
    ledgers.passes(SECOND)

    fire(ledgers, claim(ledgers, run_id))
    passage = ledgers.write(gates.wait(ledgers.snapshot, run_id, "approval"))

    assert passage.resolution_json == '{"timed_out":true,"payload":{"gate":"approval","note":7}}'
    assert lifecycle.find(ledgers.snapshot, run_id).status is RunStatus.RUNNABLE
    assert listed(ledgers, run_id) == ("fired", None)


def test_a_timeout_comes_too_late_for_a_gate_that_was_answered() -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id, GATE_TIMEOUT, '{"gate":"approval"}')
    ledgers.write(gates.send(ledgers.snapshot, run_id, "approval", "yes"))
    ledgers.passes(SECOND)

    fire(ledgers, claim(ledgers, run_id))

    assert ledgers.write(gates.wait(ledgers.snapshot, run_id, "approval")).gate.resolutions == ("yes",)


@pytest.mark.parametrize("payload", ["", "[]", '{"index":0}', '{"gate":"g","index":"x"}'])
def test_a_timeout_names_its_gate(payload: str) -> None:
    ledgers = MemoryLedgers()
    run_id = ledgers.begin().run_id
    arm(ledgers, run_id, GATE_TIMEOUT, payload)
    ledgers.passes(SECOND)

    with pytest.raises(JsonLimit, match="gate_timeout"):
        fire(ledgers, claim(ledgers, run_id))
