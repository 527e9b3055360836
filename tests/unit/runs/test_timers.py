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
from tests.unit.runs.book import Book

SECOND = timedelta(seconds=1)


def arm(book: Book, run_id: RunId, kind: str = "", payload: str = "", name: str = "t") -> Timer:
    timer = Timer(run_id=run_id, timer_id=name, fire_at_ms=book.now_ms + 1000, kind=kind, payload_json=payload)
    return book.write(timers.arm(book.snapshot, timer))


def claim(book: Book, run_id: RunId, owner: str = "h1") -> TimerClaim:
    return book.write(timers.claim(book.snapshot, run_id, "t", owner, WORK_LEASE))


def fire(book: Book, held: TimerClaim) -> Timer:
    return book.write(timers.fire(book.snapshot, held.timer.run_id, "t", held.timer.claim.attempt))


def listed(book: Book, run_id: RunId) -> tuple[str, int | None]:
    cell = book.cells[TIMERS.at(timers.key_of(run_id, "t"))]
    return cell.status, cell.due_at_ms


def test_a_timer_is_due_at_its_time() -> None:
    book = Book()
    run_id = book.begin().run_id
    timer = arm(book, run_id)

    early = claim(book, run_id)
    book.passes(SECOND)

    assert listed(book, run_id) == ("set", timer.fire_at_ms)
    assert (early.is_acquired, claim(book, run_id).is_acquired) == (False, True)


def test_a_timer_whose_handler_is_lost_is_due_again() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id)
    book.passes(SECOND)
    lost = claim(book, run_id)

    assert not claim(book, run_id, "h2").is_acquired
    book.passes(WORK_LEASE)
    held = claim(book, run_id, "h2")

    assert held.is_acquired
    with pytest.raises(StaleClaim):
        fire(book, lost)


def test_what_has_fired_is_not_due() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id)
    book.passes(SECOND)
    held = claim(book, run_id)

    fire(book, held), fire(book, held)

    assert listed(book, run_id) == ("fired", None)
    assert book.said("timer") == ["set", "fired"]


def test_setting_it_again_arms_it_again() -> None:
    book = Book()
    run_id = book.begin().run_id
    first = arm(book, run_id)

    same = book.write(timers.arm(book.snapshot, first))
    book.passes(SECOND)
    fire(book, claim(book, run_id))
    later = arm(book, run_id)

    assert same == first and later.status is TimerStatus.SET
    assert book.said("timer") == ["set", "fired", "set"]


def test_a_timer_that_was_cancelled_does_not_fire() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id)

    first = book.write(timers.cancel(book.snapshot, run_id, "t"))
    second = book.write(timers.cancel(book.snapshot, run_id, "t"))
    book.passes(SECOND)

    assert (first, second) == (True, False)
    assert not claim(book, run_id).is_acquired


def test_a_run_that_has_ended_needs_no_timer() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id)
    book.end(run_id, RunStatus.CANCELLED)
    book.passes(SECOND)

    late = claim(book, run_id)

    assert not late.is_acquired and late.timer.status is TimerStatus.CANCELLED
    with pytest.raises(RunClosed):
        arm(book, run_id)


def test_a_timeout_ends_the_wait_at_its_gate_in_the_same_step() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id, GATE_TIMEOUT, '{"gate":"approval","note":7}')
    book.write(gates.wait(book.snapshot, run_id, "approval"))
    book.passes(SECOND)

    fire(book, claim(book, run_id))
    passage = book.write(gates.wait(book.snapshot, run_id, "approval"))

    assert passage.resolution_json == '{"timed_out":true,"payload":{"gate":"approval","note":7}}'
    assert lifecycle.find(book.snapshot, run_id).status is RunStatus.RUNNABLE
    assert listed(book, run_id) == ("fired", None)


def test_a_timeout_comes_too_late_for_a_gate_that_was_answered() -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id, GATE_TIMEOUT, '{"gate":"approval"}')
    book.write(gates.send(book.snapshot, run_id, "approval", "yes"))
    book.passes(SECOND)

    fire(book, claim(book, run_id))

    assert book.write(gates.wait(book.snapshot, run_id, "approval")).gate.resolutions == ("yes",)


@pytest.mark.parametrize("payload", ["", "[]", '{"index":0}', '{"gate":"g","index":"x"}'])
def test_a_timeout_names_its_gate(payload: str) -> None:
    book = Book()
    run_id = book.begin().run_id
    arm(book, run_id, GATE_TIMEOUT, payload)
    book.passes(SECOND)

    with pytest.raises(JsonLimit, match="gate_timeout"):
        fire(book, claim(book, run_id))
