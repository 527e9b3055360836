"""Gates: signal before or after the wait, and again."""

import pytest

from tape.core.errors import LimitReached, RunClosed, StaleClaim, UsageError
from tape.core.gate import SignalResult, WaitResult
from tape.core.ids import RunId
from tape.core.run_state import RunStatus
from tape.runs import gates, lifecycle
from tape.runs.lifecycle import RUNS
from tests.unit.runs.memory_ledgers import MINUTE, MemoryLedgers


def wait(ledgers: MemoryLedgers, run_id: RunId, index: int = 0, fence: int | None = None) -> WaitResult:
    return ledgers.write(gates.wait(ledgers.snapshot, run_id, "approval", index, fence=fence))


def send(ledgers: MemoryLedgers, run_id: RunId, answer: str = "yes") -> SignalResult:
    return ledgers.write(gates.send(ledgers.snapshot, run_id, "approval", answer))


def test_a_run_that_waits_is_parked_and_free() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")

    passage = wait(ledgers, run.run_id)
    parked = lifecycle.find(ledgers.snapshot, run.run_id)

    assert not passage.is_delivered
    assert (parked.status, parked.waiting_on_gate, parked.claim.owner) == (RunStatus.WAITING, "approval", "")
    assert ledgers.cells[RUNS.at(run.run_id)].due_at_ms is None


def test_a_signal_lets_the_run_that_waits_for_it_go_on() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    wait(ledgers, run.run_id)

    signal = send(ledgers, run.run_id)
    again = ledgers.write(lifecycle.take(ledgers.snapshot, run.run_id, "w2", MINUTE))

    assert signal.run_status is RunStatus.RUNNABLE and again.is_acquired
    assert wait(ledgers, run.run_id).resolution_json == "yes"
    assert ledgers.verbs("gate") == ["waiting", "released"]
    assert ledgers.verbs("run") == ["running", "waiting", "runnable", "running"]


def test_a_signal_before_the_wait_is_delivered_at_once() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")

    signal = send(ledgers, run.run_id)

    assert signal.is_accepted and signal.run_status is None
    assert wait(ledgers, run.run_id).resolution_json == "yes"
    assert lifecycle.find(ledgers.snapshot, run.run_id).status is RunStatus.RUNNING


def test_a_gate_is_passed_again_by_the_next_wait() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    send(ledgers, run.run_id, "first")

    parked = wait(ledgers, run.run_id, 1)
    send(ledgers, run.run_id, "second")

    assert not parked.is_delivered
    assert [wait(ledgers, run.run_id, n).resolution_json for n in (0, 1)] == ["first", "second"]


def test_waiting_again_for_the_same_signal_writes_no_entry() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin("w1")
    wait(ledgers, run.run_id)
    written = len(ledgers.events)

    assert not wait(ledgers, run.run_id).is_delivered
    assert len(ledgers.events) == written


def test_waits_are_taken_in_order() -> None:
    ledgers = MemoryLedgers()

    with pytest.raises(UsageError, match="comes after wait 0"):
        wait(ledgers, ledgers.begin().run_id, 1)


def test_a_signal_at_another_gate_leaves_the_run_parked() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    wait(ledgers, run.run_id)

    ledgers.write(gates.send(ledgers.snapshot, run.run_id, "other", "yes"))

    assert lifecycle.find(ledgers.snapshot, run.run_id).status is RunStatus.WAITING


def test_a_run_that_waits_at_two_gates_goes_on_with_the_first_answer() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    wait(ledgers, run.run_id)
    ledgers.write(gates.wait(ledgers.snapshot, run.run_id, "other"))

    assert send(ledgers, run.run_id).run_status is RunStatus.RUNNABLE


def test_a_run_that_has_ended_takes_no_signal_and_does_not_wait() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    ledgers.end(run.run_id, RunStatus.CANCELLED)

    assert not send(ledgers, run.run_id).is_accepted
    with pytest.raises(RunClosed):
        wait(ledgers, run.run_id)


def test_a_stale_worker_does_not_park_the_run() -> None:
    ledgers = MemoryLedgers()
    stale, _ = ledgers.begin("w1"), ledgers.begin("w1")

    with pytest.raises(StaleClaim):
        wait(ledgers, stale.run_id, fence=stale.claim.attempt)


def test_a_gate_takes_so_many_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MAX_SIGNALS", 2)
    ledgers = MemoryLedgers()
    run = ledgers.begin()
    send(ledgers, run.run_id), send(ledgers, run.run_id)

    with pytest.raises(LimitReached, match="2 signals"):
        send(ledgers, run.run_id)


def test_an_entry_of_a_gate_has_its_name_and_status() -> None:
    ledgers = MemoryLedgers()
    run = ledgers.begin()

    send(ledgers, run.run_id)

    assert ledgers.events[-1].dims == ("approval", run.run_id)
    assert ledgers.events[-1].payload == {
        "gate": "approval",
        "status": "released",
        "index": 0,
        "resolution_json": "yes",
    }
