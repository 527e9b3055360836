"""Transitions of a run."""

from datetime import timedelta
from itertools import product

import pytest

from tape.core.claim import RUN_LEASE
from tape.core.errors import Conflict, NotFound, RunClosed, StaleClaim, UsageError
from tape.core.ids import RunId
from tape.core.run_state import ENDINGS, FINAL, Invocation, RunSpec, RunStatus
from tape.runs import gates, lifecycle
from tape.runs.lifecycle import RUNS
from tests.unit.runs.memory_ledgers import MemoryLedgers

OF = Invocation(app="treasury", user="ann", session="s", invocation="1")


def test_beginning_twice_is_one_run_that_is_resumed() -> None:
    ledgers = MemoryLedgers()

    first, second = ledgers.begun(), ledgers.begun()

    assert first.run.run_id == second.run.run_id
    assert (first.is_resumed, second.is_resumed) == (False, True)


@pytest.mark.parametrize("other", [{"app": "b"}, {"user": "b"}, {"session": "b"}, {"invocation": "b"}])
def test_each_of_the_four_names_makes_another_run(other: dict[str, str]) -> None:
    names = {"app": "a", "user": "a", "session": "a", "invocation": "a"}

    assert Invocation(**names).run_id != Invocation(**(names | other)).run_id


def test_names_that_read_alike_together_are_not_one_run() -> None:
    assert Invocation(app="a/b", user="c").run_id != Invocation(app="a", user="b/c").run_id


def test_a_run_without_an_owner_waits_for_whoever_takes_it() -> None:
    ledgers = MemoryLedgers()

    run = ledgers.begin(owner="")
    taken = ledgers.write(lifecycle.take(ledgers.snapshot, run.run_id, "w1", RUN_LEASE))

    assert run.status is RunStatus.RUNNABLE
    assert taken.is_acquired and taken.run.status is RunStatus.RUNNING
    assert ledgers.verbs("run") == ["runnable", "running"]


def test_another_owner_does_not_get_a_run_while_its_lease_lives() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")

    ledgers.passes(RUN_LEASE - timedelta(milliseconds=1))
    loser = ledgers.write(lifecycle.take(ledgers.snapshot, run.run_id, "w2", RUN_LEASE))

    assert not loser.is_acquired and loser.run.claim.owner == "w1"


def test_a_silent_worker_loses_its_run_and_is_fenced_off() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")

    ledgers.passes(RUN_LEASE)
    winner = ledgers.write(lifecycle.take(ledgers.snapshot, run.run_id, "w2", RUN_LEASE))

    assert winner.is_acquired and winner.run.claim.attempt == run.claim.attempt + 1
    with pytest.raises(StaleClaim):
        lifecycle.heartbeat(ledgers.snapshot, run.run_id, run.claim.attempt)
    with pytest.raises(StaleClaim):
        lifecycle.end(ledgers.snapshot, run.run_id, RunStatus.TERMINAL, fence=run.claim.attempt)


def test_a_worker_that_comes_back_under_its_own_name_fences_off_its_former_self() -> None:
    ledgers = MemoryLedgers()
    before, after = ledgers.begin("w1"), ledgers.begin("w1")

    with pytest.raises(StaleClaim):
        lifecycle.heartbeat(ledgers.snapshot, before.run_id, before.claim.attempt)
    assert lifecycle.heartbeat(ledgers.snapshot, after.run_id, after.claim.attempt).cells


def test_a_heartbeat_renews_the_lease_and_writes_no_entry() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    written = len(ledgers.events)

    ledgers.passes(timedelta(seconds=100))
    alive = ledgers.write(lifecycle.heartbeat(ledgers.snapshot, run.run_id, run.claim.attempt))

    assert alive.claim.expires_at_ms == ledgers.now_ms + RUN_LEASE // timedelta(milliseconds=1)
    assert len(ledgers.events) == written


def test_a_worker_that_parked_its_run_may_still_record_steps_in_progress() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    ledgers.write(gates.wait(ledgers.snapshot, run.run_id, "approval", fence=run.claim.attempt))

    state = ledgers.write(lifecycle.heartbeat(ledgers.snapshot, run.run_id, run.claim.attempt))
    proof = lifecycle.fenced(ledgers.snapshot, state, run.claim.attempt)

    assert state.status is RunStatus.WAITING and [change.status for change in proof] == ["parked"]


def test_a_stale_worker_is_fenced_off_after_the_end_too() -> None:
    ledgers = MemoryLedgers()
    stale, run = ledgers.begin("w1"), ledgers.begin("w1")
    ended = ledgers.end(run.run_id, RunStatus.CANCELLED)

    assert lifecycle.fenced(ledgers.snapshot, ended, run.claim.attempt) == ()
    with pytest.raises(StaleClaim):
        lifecycle.fenced(ledgers.snapshot, ended, stale.claim.attempt)


@pytest.mark.parametrize("status", sorted(ENDINGS))
def test_what_has_ended_is_not_revived_by_beginning_it_again(status: RunStatus) -> None:
    ledgers = MemoryLedgers()
    ledgers.end(ledgers.begin().run_id, status)

    again = ledgers.begun("w2")

    assert again.is_resumed and not again.is_acquired and again.run.status is status


@pytest.mark.parametrize(
    ("later", "status"), [pair for pair in product(sorted(ENDINGS), sorted(FINAL)) if len({*pair}) > 1]
)
def test_a_final_end_stays(status: RunStatus, later: RunStatus) -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    ledgers.end(run.run_id, status)

    with pytest.raises(Conflict, match="stays"):
        ledgers.end(run.run_id, later)
    assert ledgers.end(run.run_id, status).status is status
    assert ledgers.verbs("run") == ["running", status.value]


def test_a_cancelled_run_stays_cancelled_for_the_worker_that_did_not_know() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    ledgers.end(run.run_id, RunStatus.CANCELLED)

    state = ledgers.write(lifecycle.heartbeat(ledgers.snapshot, run.run_id, run.claim.attempt))

    assert state.status is RunStatus.CANCELLED
    with pytest.raises(Conflict, match="stays"):
        ledgers.end(run.run_id, RunStatus.TERMINAL, fence=run.claim.attempt)


def test_a_compensating_run_comes_to_an_end() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    ledgers.end(run.run_id, RunStatus.COMPENSATING)

    assert ledgers.end(run.run_id, RunStatus.FAILED).status is RunStatus.FAILED


def test_a_run_does_not_end_as_running() -> None:
    ledgers = MemoryLedgers()

    with pytest.raises(UsageError, match="a run ends as"):
        ledgers.end(ledgers.begin().run_id, RunStatus.RUNNING)


def test_an_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFound, match="no run 'r9'"):
        lifecycle.take(MemoryLedgers().snapshot, RunId("r9"), "w", RUN_LEASE)


def test_an_ended_run_takes_nothing_new() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    ledgers.end(run.run_id, RunStatus.TERMINAL)

    with pytest.raises(RunClosed):
        lifecycle.active(ledgers.snapshot, run.run_id)


@pytest.mark.parametrize("lease", [timedelta(milliseconds=999), timedelta(minutes=15, milliseconds=1)])
def test_a_lease_is_one_second_to_fifteen_minutes(lease: timedelta) -> None:
    with pytest.raises(UsageError, match="a lease is"):
        RunSpec(of=OF, owner="w", lease=lease)


def test_an_entry_of_a_run_has_the_keys_that_predicates_use() -> None:
    ledgers = MemoryLedgers()
    ledgers.begin("w1", scopes=("payments",))

    (event,) = ledgers.events
    assert event.dims == ("treasury", "ann", "s", OF.run_id)
    assert isinstance(event.payload, dict)
    assert {"app", "user", "session", "run_id", "invocation_id", "status", "tenant_id", "actor", "subject"} <= {
        *event.payload
    }


def test_only_a_run_that_may_be_taken_is_listed_as_such() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    leased = ledgers.cells[RUNS.at(run.run_id)]

    ledgers.end(run.run_id, RunStatus.CANCELLED)
    ended = ledgers.cells[RUNS.at(run.run_id)]

    assert (leased.status, leased.due_at_ms) == ("leased", run.claim.expires_at_ms)
    assert (ended.status, ended.due_at_ms) == ("ended", ledgers.now_ms)
