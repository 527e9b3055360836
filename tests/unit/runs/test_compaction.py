"""Compaction deletes bodies and keeps records."""

import pytest

from tape.core.decision import Decision
from tape.core.effect import Compensation, Effect, EffectSpec, EffectStatus
from tape.core.errors import NotReady
from tape.core.ids import RunId
from tape.core.run_state import Compaction, RunStatus
from tape.runs import compaction, compensation, decisions, effects
from tape.runs.decisions import DECISIONS
from tests.unit.runs.memory_ledgers import MemoryLedgers


def worked(ledgers: MemoryLedgers, status: EffectStatus = EffectStatus.CONFIRMED) -> RunId:
    run_id = ledgers.begin().run_id
    decided = Decision(run_id=run_id, decision_index=0, model="m", request_json="12345", rationale="678")
    ledgers.write(decisions.record(ledgers.snapshot, decided))
    effect = ledgers.write(effects.begin(ledgers.snapshot, EffectSpec(run_id=run_id, tool="wire", request_json="12")))
    if status is not EffectStatus.PENDING:
        ledgers.write(effects.complete(ledgers.snapshot, (run_id, effect.idempotency_key), status, "3"))
    return run_id


def compact(ledgers: MemoryLedgers, run_id: RunId) -> Compaction:
    while (done := ledgers.write(compaction.compact_batch(ledgers.snapshot, run_id))) is None:
        pass
    return done


def test_bodies_go_and_the_envelope_stays() -> None:
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.end(run_id, RunStatus.TERMINAL)

    report = compact(ledgers, run_id)
    kept = DECISIONS.find(ledgers.snapshot, decisions.key_of(run_id, 0))

    assert report == Compaction(decisions_zeroed=1, effects_zeroed=1, bytes_saved=8 + 3)
    assert kept is not None and (kept.model, kept.request_json, kept.rationale) == ("m", "", "")
    assert ledgers.verbs("run") == ["running", "terminal", "compacted"]
    assert isinstance(ledgers.events[-1].payload, dict) and isinstance(ledgers.events[-1].payload["report"], dict)


def test_compacting_twice_does_nothing() -> None:
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.end(run_id, RunStatus.TERMINAL)
    compact(ledgers, run_id)

    assert compact(ledgers, run_id) == Compaction(already_compacted=True)


def test_a_run_that_goes_on_is_not_compacted() -> None:
    ledgers = MemoryLedgers()

    with pytest.raises(NotReady, match="not terminal"):
        compact(ledgers, worked(ledgers))


@pytest.mark.parametrize("status", [EffectStatus.PENDING, EffectStatus.UNKNOWN])
def test_a_run_with_an_open_effect_is_not_compacted(status: EffectStatus) -> None:
    ledgers = MemoryLedgers()
    run_id = worked(ledgers, status)
    ledgers.end(run_id, RunStatus.TERMINAL)

    with pytest.raises(NotReady, match="not settled"):
        compact(ledgers, run_id)


def test_a_run_that_owes_is_not_compacted() -> None:
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.write(compensation.register(ledgers.snapshot, run_id, "e", Compensation(kind="refund")))
    ledgers.end(run_id, RunStatus.FAILED)

    with pytest.raises(NotReady, match="not settled"):
        compact(ledgers, run_id)


def test_whoever_is_interrupted_goes_on_with_the_same_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH", 1)
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.end(run_id, RunStatus.TERMINAL)

    assert ledgers.write(compaction.compact_batch(ledgers.snapshot, run_id)) is None
    report = compact(ledgers, run_id)

    assert report == Compaction(decisions_zeroed=1, effects_zeroed=1, bytes_saved=11)


def test_what_an_interrupted_compaction_has_deleted_contradicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH", 1)
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.end(run_id, RunStatus.TERMINAL)
    (decision,) = DECISIONS.states(ledgers.cells)

    for _ in range(2):  # the decision and the effect, without the report
        ledgers.write(compaction.compact_batch(ledgers.snapshot, run_id))

    assert decisions.record(ledgers.snapshot, decision).result.request_json == ""
    spec = EffectSpec(run_id=run_id, tool="wire", request_json="12")
    assert effects.begin(ledgers.snapshot, spec).result.request_json == ""


def test_an_effect_is_still_known_by_its_key_afterwards() -> None:
    ledgers = MemoryLedgers()
    run_id = worked(ledgers)
    ledgers.end(run_id, RunStatus.TERMINAL)
    compact(ledgers, run_id)

    effect: Effect = effects.begin(ledgers.snapshot, EffectSpec(run_id=run_id, tool="wire")).result

    assert (effect.status, effect.response_json) == (EffectStatus.CONFIRMED, "")
