"""Decisions: the first that is written stays."""

import pytest

from tape.core.decision import Decision
from tape.core.errors import Conflict, RunClosed, StaleClaim, UsageError
from tape.core.run_state import RunStatus
from tape.runs.decisions import record
from tests.unit.runs.memory_ledgers import MemoryLedgers


def test_the_first_decision_at_a_place_stays() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()

    first = ledgers.write(record(ledgers.snapshot, Decision(run_id=run.run_id, decision_index=0, response_json="1")))
    second = ledgers.write(record(ledgers.snapshot, Decision(run_id=run.run_id, decision_index=0, response_json="2")))

    assert first == second and second.response_json == "1"
    with pytest.raises(Conflict, match="stays"):
        record(ledgers.snapshot, Decision(run_id=run.run_id, decision_index=0, request_json="another"))
    assert ledgers.verbs("decision") == ["recorded"]


def test_an_entry_of_a_decision_has_no_bodies() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()

    decision = Decision(run_id=run.run_id, decision_index=3, model="m", request_json="q", rationale="why")
    ledgers.write(record(ledgers.snapshot, decision))

    assert ledgers.events[-1].dims == (run.run_id, "3")
    assert ledgers.events[-1].payload == {"decision_index": 3, "model": "m", "policy_version": "", "rationale": "why"}


def test_an_ended_run_takes_no_decision_but_returns_recorded_ones() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    known = Decision(run_id=run.run_id, decision_index=0)
    ledgers.write(record(ledgers.snapshot, known))
    ledgers.end(run.run_id, RunStatus.TERMINAL)

    assert record(ledgers.snapshot, known).result.decision_index == 0
    with pytest.raises(RunClosed):
        record(ledgers.snapshot, Decision(run_id=run.run_id, decision_index=1))


def test_a_stale_worker_records_nothing() -> None:
    ledgers = MemoryLedgers()
    stale, _ = ledgers.begin("w1"), ledgers.begin("w1")

    with pytest.raises(StaleClaim):
        record(ledgers.snapshot, Decision(run_id=stale.run_id, decision_index=0), stale.claim.attempt)


def test_a_place_is_a_whole_number() -> None:
    with pytest.raises(UsageError, match="decision_index"):
        Decision(run_id=MemoryLedgers().begin().run_id, decision_index=-1)
