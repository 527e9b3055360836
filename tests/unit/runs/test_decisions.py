"""Decisions: the first that is written stays."""

import pytest

from tape.core.decision import Decision
from tape.core.errors import RunClosed, StaleClaim, UsageError
from tape.core.run_state import RunStatus
from tape.runs.decisions import record
from tests.unit.runs.book import Book


def test_the_first_decision_at_a_place_stays() -> None:
    book = Book()
    run = book.begin()

    first = book.write(record(book.snapshot, Decision(run_id=run.run_id, decision_index=0, response_json="1")))
    second = book.write(record(book.snapshot, Decision(run_id=run.run_id, decision_index=0, response_json="2")))

    assert first == second and second.response_json == "1"
    assert book.said("decision") == ["recorded"]


def test_a_decision_says_what_it_was_but_not_its_bodies() -> None:
    book = Book()
    run = book.begin()

    decision = Decision(run_id=run.run_id, decision_index=3, model="m", request_json="q", rationale="why")
    book.write(record(book.snapshot, decision))

    assert book.events[-1].dims == (run.run_id, "3")
    assert book.events[-1].payload == {"decision_index": 3, "model": "m", "policy_version": "", "rationale": "why"}


def test_an_ended_run_takes_no_decision_but_tells_those_it_has() -> None:
    book = Book()
    run = book.begin()
    known = Decision(run_id=run.run_id, decision_index=0)
    book.write(record(book.snapshot, known))
    book.end(run.run_id, RunStatus.TERMINAL)

    assert record(book.snapshot, known).result.decision_index == 0
    with pytest.raises(RunClosed):
        record(book.snapshot, Decision(run_id=run.run_id, decision_index=1))


def test_a_stale_worker_records_nothing() -> None:
    book = Book()
    stale, _ = book.begin("w1"), book.begin("w1")

    with pytest.raises(StaleClaim):
        record(book.snapshot, Decision(run_id=stale.run_id, decision_index=0), stale.claim.attempt)


def test_a_place_is_a_whole_number() -> None:
    with pytest.raises(UsageError, match="decision_index"):
        Decision(run_id=Book().begin().run_id, decision_index=-1)
