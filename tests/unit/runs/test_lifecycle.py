"""The life of a run."""

from datetime import timedelta

import pytest

from tape.core.claim import RUN_LEASE
from tape.core.errors import NotFound, RunClosed, StaleClaim, UsageError
from tape.core.ids import RunId
from tape.core.run_state import ENDINGS, FINAL, Invocation, RunSpec, RunStatus
from tape.runs import gates, lifecycle
from tape.runs.lifecycle import RUNS
from tests.unit.runs.book import Book

OF = Invocation(app="treasury", user="ann", session="s", invocation="1")


def test_beginning_twice_is_one_run_that_is_resumed() -> None:
    book = Book()

    first, second = book.begun(), book.begun()

    assert first.run.run_id == second.run.run_id
    assert (first.is_resumed, second.is_resumed) == (False, True)


@pytest.mark.parametrize("other", [{"app": "b"}, {"user": "b"}, {"session": "b"}, {"invocation": "b"}])
def test_each_of_the_four_names_makes_another_run(other: dict[str, str]) -> None:
    names = {"app": "a", "user": "a", "session": "a", "invocation": "a"}

    assert Invocation(**names).run_id != Invocation(**(names | other)).run_id


def test_names_that_read_alike_together_are_not_one_run() -> None:
    assert Invocation(app="a/b", user="c").run_id != Invocation(app="a", user="b/c").run_id


def test_a_run_without_an_owner_waits_for_whoever_takes_it() -> None:
    book = Book()

    run = book.begin(owner="")
    taken = book.write(lifecycle.take(book.snapshot, run.run_id, "w1", RUN_LEASE))

    assert run.status is RunStatus.RUNNABLE
    assert taken.is_acquired and taken.run.status is RunStatus.RUNNING
    assert book.said("run") == ["runnable", "running"]


def test_another_owner_does_not_get_a_run_while_its_lease_lives() -> None:
    book = Book()
    run = book.begin("w1")

    book.passes(RUN_LEASE - timedelta(milliseconds=1))
    loser = book.write(lifecycle.take(book.snapshot, run.run_id, "w2", RUN_LEASE))

    assert not loser.is_acquired and loser.run.claim.owner == "w1"


def test_a_silent_worker_loses_its_run_and_is_fenced_off() -> None:
    book = Book()
    run = book.begin("w1")

    book.passes(RUN_LEASE)
    winner = book.write(lifecycle.take(book.snapshot, run.run_id, "w2", RUN_LEASE))

    assert winner.is_acquired and winner.run.claim.attempt == run.claim.attempt + 1
    with pytest.raises(StaleClaim):
        lifecycle.heartbeat(book.snapshot, run.run_id, run.claim.attempt)
    with pytest.raises(StaleClaim):
        lifecycle.end(book.snapshot, run.run_id, RunStatus.TERMINAL, fence=run.claim.attempt)


def test_a_worker_that_comes_back_under_its_own_name_fences_off_its_former_self() -> None:
    book = Book()
    before, after = book.begin("w1"), book.begin("w1")

    with pytest.raises(StaleClaim):
        lifecycle.heartbeat(book.snapshot, before.run_id, before.claim.attempt)
    assert lifecycle.heartbeat(book.snapshot, after.run_id, after.claim.attempt).cells


def test_a_heartbeat_renews_the_lease_and_says_nothing() -> None:
    book = Book()
    run = book.begin("w1")
    said = len(book.events)

    book.passes(timedelta(seconds=100))
    alive = book.write(lifecycle.heartbeat(book.snapshot, run.run_id, run.claim.attempt))

    assert alive.claim.expires_at_ms == book.now_ms + RUN_LEASE // timedelta(milliseconds=1)
    assert len(book.events) == said


def test_who_parked_its_run_may_still_say_what_it_had_under_way() -> None:
    book = Book()
    run = book.begin("w1")
    book.write(gates.wait(book.snapshot, run.run_id, "approval", fence=run.claim.attempt))

    told = book.write(lifecycle.heartbeat(book.snapshot, run.run_id, run.claim.attempt))
    proof = lifecycle.fenced(book.snapshot, told, run.claim.attempt)

    assert told.status is RunStatus.WAITING and [change.status for change in proof] == ["parked"]


def test_a_stale_worker_is_fenced_off_after_the_end_too() -> None:
    book = Book()
    stale, run = book.begin("w1"), book.begin("w1")
    ended = book.end(run.run_id, RunStatus.CANCELLED)

    assert lifecycle.fenced(book.snapshot, ended, run.claim.attempt) == ()
    with pytest.raises(StaleClaim):
        lifecycle.fenced(book.snapshot, ended, stale.claim.attempt)


@pytest.mark.parametrize("status", sorted(ENDINGS))
def test_what_has_ended_is_not_revived_by_beginning_it_again(status: RunStatus) -> None:
    book = Book()
    book.end(book.begin().run_id, status)

    again = book.begun("w2")

    assert again.is_resumed and not again.is_acquired and again.run.status is status


@pytest.mark.parametrize("status", sorted(FINAL))
@pytest.mark.parametrize("later", sorted(ENDINGS))
def test_a_final_end_stays(status: RunStatus, later: RunStatus) -> None:
    book = Book()
    run = book.begin()
    book.end(run.run_id, status)

    assert book.end(run.run_id, later).status is status
    assert book.said("run") == ["running", status.value]


def test_a_cancelled_run_stays_cancelled_for_the_worker_that_did_not_know() -> None:
    book = Book()
    run = book.begin("w1")
    book.end(run.run_id, RunStatus.CANCELLED)

    told = book.write(lifecycle.heartbeat(book.snapshot, run.run_id, run.claim.attempt))
    ended = book.end(run.run_id, RunStatus.TERMINAL, fence=run.claim.attempt)

    assert told.status is ended.status is RunStatus.CANCELLED


def test_a_compensating_run_comes_to_an_end() -> None:
    book = Book()
    run = book.begin()
    book.end(run.run_id, RunStatus.COMPENSATING)

    assert book.end(run.run_id, RunStatus.FAILED).status is RunStatus.FAILED


def test_a_run_does_not_end_as_running() -> None:
    book = Book()

    with pytest.raises(UsageError, match="a run ends as"):
        book.end(book.begin().run_id, RunStatus.RUNNING)


def test_an_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFound, match="no run 'r9'"):
        lifecycle.take(Book().snapshot, RunId("r9"), "w", RUN_LEASE)


def test_an_ended_run_takes_nothing_new() -> None:
    book = Book()
    run = book.begin()
    book.end(run.run_id, RunStatus.TERMINAL)

    with pytest.raises(RunClosed):
        lifecycle.active(book.snapshot, run.run_id)


@pytest.mark.parametrize("lease", [timedelta(milliseconds=999), timedelta(minutes=15, milliseconds=1)])
def test_a_lease_is_one_second_to_fifteen_minutes(lease: timedelta) -> None:
    with pytest.raises(UsageError, match="a lease is"):
        RunSpec(of=OF, owner="w", lease=lease)


def test_what_a_run_says_of_itself_has_the_keys_that_predicates_use() -> None:
    book = Book()
    book.begin("w1", scopes=("payments",))

    (event,) = book.events
    assert event.dims == ("treasury", "ann", "s", OF.run_id)
    assert isinstance(event.payload, dict)
    assert {"app", "user", "session", "run_id", "invocation_id", "status", "tenant_id", "actor", "subject"} <= {
        *event.payload
    }


def test_only_a_run_that_may_be_taken_is_listed_as_such() -> None:
    book = Book()
    run = book.begin("w1")
    leased = book.cells[RUNS.at(run.run_id)]

    book.end(run.run_id, RunStatus.CANCELLED)
    ended = book.cells[RUNS.at(run.run_id)]

    assert (leased.status, leased.due_at_ms) == ("leased", run.claim.expires_at_ms)
    assert (ended.status, ended.due_at_ms) == ("ended", book.now_ms)
