"""Obligations: newest first, one holder at a time, never for a run that is well."""

from datetime import timedelta

import pytest

from tape.core.claim import WORK_LEASE
from tape.core.effect import Compensation
from tape.core.errors import Conflict, NotFound, StaleClaim, UsageError
from tape.core.ids import RunId
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.run_state import RunState, RunStatus
from tape.runs import compensation
from tape.runs.lifecycle import DEBTS
from tests.unit.runs.memory_ledgers import MemoryLedgers

SECOND_MS = 1_000


def owing(ledgers: MemoryLedgers, *kinds: str, status: RunStatus | None = RunStatus.FAILED, most: int = 5) -> RunState:
    run = ledgers.begin()
    for kind in kinds:
        how = Compensation(kind=kind, max_attempts=most)
        ledgers.write(compensation.register(ledgers.snapshot, run.run_id, "effect", how))
    return run if status is None else ledgers.end(run.run_id, status)


def claim(ledgers: MemoryLedgers, run_id: RunId, number: int, owner: str = "d1") -> ObligationClaim:
    return ledgers.write(compensation.claim(ledgers.snapshot, run_id, number, owner, WORK_LEASE))


def fail(ledgers: MemoryLedgers, held: ObligationClaim, next_ms: int) -> Obligation:
    of = held.obligation
    return ledgers.write(compensation.attempt(ledgers.snapshot, of.run_id, of.number, of.claim.attempt, "no", next_ms))


def meet(ledgers: MemoryLedgers, held: ObligationClaim) -> Obligation:
    of, status = held.obligation, ObligationStatus.COMPENSATED
    return ledgers.write(compensation.resolve(ledgers.snapshot, of.run_id, of.number, status, "ok", of.claim.attempt))


def debt(ledgers: MemoryLedgers, run_id: RunId) -> tuple[str, int | None]:
    cell = ledgers.cells[DEBTS.at(run_id)]
    return cell.status, cell.due_at_ms


def test_registering_twice_is_one_obligation() -> None:
    ledgers = MemoryLedgers()

    run = owing(ledgers, "refund", "refund", status=None)

    assert ledgers.verbs("obligation") == ["registered"]
    assert compensation.numbered(ledgers.snapshot, run.run_id, 1).status is ObligationStatus.PENDING


@pytest.mark.parametrize("status", [None, RunStatus.TERMINAL])
def test_a_healthy_run_owes_nothing_yet(status: RunStatus | None) -> None:
    ledgers = MemoryLedgers()

    run = owing(ledgers, "refund", status=status)

    assert debt(ledgers, run.run_id) == ("held", None)
    assert compensation.first(ledgers.snapshot, run.run_id) is None
    assert not claim(ledgers, run.run_id, 1).is_acquired


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPENSATING, RunStatus.STUCK])
def test_the_obligations_of_a_failed_run_fall_due(status: RunStatus) -> None:
    ledgers = MemoryLedgers()

    run = owing(ledgers, "refund", status=status)

    assert debt(ledgers, run.run_id) == ("due", ledgers.now_ms)
    assert claim(ledgers, run.run_id, 1).is_acquired


def test_what_is_registered_after_the_run_has_failed_is_due_at_once() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers)

    ledgers.write(compensation.register(ledgers.snapshot, run.run_id, "effect", Compensation(kind="refund")))

    assert debt(ledgers, run.run_id) == ("due", ledgers.now_ms)


def test_the_newest_obligation_is_met_first() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "sweep", "hedge", "post")
    met = []

    while (turn := compensation.first(ledgers.snapshot, run.run_id)) is not None:
        met.append(meet(ledgers, claim(ledgers, run.run_id, turn.number)).kind)

    assert met == ["post", "hedge", "sweep"]
    assert debt(ledgers, run.run_id) == ("held", None)


def test_an_older_obligation_waits_for_its_turn() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "sweep", "hedge")

    assert not claim(ledgers, run.run_id, 1).is_acquired
    claim(ledgers, run.run_id, 2)
    assert not claim(ledgers, run.run_id, 1, "d2").is_acquired


def test_one_that_waits_for_its_next_attempt_holds_up_the_older_ones() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "sweep", "hedge")

    fail(ledgers, claim(ledgers, run.run_id, 2), ledgers.now_ms + SECOND_MS)

    assert not claim(ledgers, run.run_id, 1).is_acquired
    assert debt(ledgers, run.run_id) == ("due", ledgers.now_ms + SECOND_MS)


def test_a_stuck_one_lets_the_older_ones_be_met() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "sweep", "hedge")

    fail(ledgers, claim(ledgers, run.run_id, 2), 0)

    assert claim(ledgers, run.run_id, 1).is_acquired


def test_of_many_who_claim_it_one_has_it_and_the_others_see_who() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")

    winner, *losers = [claim(ledgers, run.run_id, 1, f"d{n}") for n in range(8)]

    assert winner.is_acquired and not any(loser.is_acquired for loser in losers)
    assert {loser.obligation.claim.owner for loser in losers} == {"d0"}


def test_the_claim_of_a_silent_holder_may_be_taken_over() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")
    stale = claim(ledgers, run.run_id, 1, "d1")

    ledgers.passes(WORK_LEASE)
    held = claim(ledgers, run.run_id, 1, "d2")

    assert held.is_acquired
    with pytest.raises(StaleClaim):
        fail(ledgers, stale, 0)
    with pytest.raises(StaleClaim):
        meet(ledgers, stale)
    assert meet(ledgers, held).status is ObligationStatus.COMPENSATED


def test_after_its_last_attempt_it_is_stuck() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund", most=2)

    first = fail(ledgers, claim(ledgers, run.run_id, 1), ledgers.now_ms + SECOND_MS)
    premature = claim(ledgers, run.run_id, 1)
    ledgers.passes(timedelta(seconds=1))
    last = fail(ledgers, claim(ledgers, run.run_id, 1), ledgers.now_ms + SECOND_MS)

    assert (first.status, premature.is_acquired) == (ObligationStatus.PENDING, False)
    assert (last.status, last.attempts, last.next_attempt_at_ms) == (ObligationStatus.STUCK, 2, 0)


def test_without_a_next_time_it_is_stuck_at_once() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")

    failed = fail(ledgers, claim(ledgers, run.run_id, 1), 0)

    assert (failed.status, failed.attempts) == (ObligationStatus.STUCK, 1)


def test_drainers_that_keep_dying_leave_it_stuck_in_the_end() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund", most=2)

    for _ in range(2):
        claim(ledgers, run.run_id, 1)
        ledgers.passes(WORK_LEASE)
    refused = claim(ledgers, run.run_id, 1)

    assert not refused.is_acquired and refused.obligation.status is ObligationStatus.STUCK


def test_a_person_may_still_meet_what_is_stuck() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")
    fail(ledgers, claim(ledgers, run.run_id, 1), 0)

    done = ledgers.write(
        compensation.resolve(ledgers.snapshot, run.run_id, 1, ObligationStatus.COMPENSATED, "by hand", None)
    )

    assert done.status is ObligationStatus.COMPENSATED
    assert ledgers.verbs("obligation") == ["registered", "committed", "stuck", "compensated"]


def test_what_is_met_stays_met() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")
    meet(ledgers, claim(ledgers, run.run_id, 1))

    with pytest.raises(Conflict, match="stays"):
        compensation.resolve(ledgers.snapshot, run.run_id, 1, ObligationStatus.STUCK, "", None)


def test_a_run_that_has_met_all_is_closed() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")
    held = claim(ledgers, run.run_id, 1).obligation

    transition = compensation.resolve(
        ledgers.snapshot, run.run_id, 1, ObligationStatus.COMPENSATED, "", held.claim.attempt
    )

    assert transition.opens and transition.closes == run.run_id


def test_an_entry_of_an_obligation_has_its_state() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")
    claim(ledgers, run.run_id, 1)

    assert ledgers.events[-1].dims == ("refund", run.run_id)
    assert ledgers.events[-1].payload == {
        "effect_key": "effect",
        "kind": "refund",
        "status": "committed",
        "transition": "claimed",
        "obligation_seq": 1,
        "attempts": 1,
        "app": "",
        "compensator": "refund",
        "claimer": "d1",
    }


def test_there_is_no_obligation_of_an_unknown_number() -> None:
    ledgers = MemoryLedgers()

    with pytest.raises(NotFound, match="no obligation 7"):
        claim(ledgers, owing(ledgers).run_id, 7)


def test_an_obligation_is_resolved_for_good_or_not_at_all() -> None:
    ledgers = MemoryLedgers()
    run = owing(ledgers, "refund")

    with pytest.raises(UsageError, match="compensated or stuck"):
        compensation.resolve(ledgers.snapshot, run.run_id, 1, ObligationStatus.PENDING, "", None)
