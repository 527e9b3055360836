"""Compaction: bodies go, what happened stays."""

import pytest

from tape.core.decision import Decision
from tape.core.effect import Compensation, Effect, EffectSpec, EffectStatus
from tape.core.errors import NotReady
from tape.core.ids import RunId
from tape.core.run_state import Compaction, RunStatus
from tape.runs import compaction, compensation, decisions, effects
from tape.runs.decisions import DECISIONS
from tests.unit.runs.book import Book


def worked(book: Book, status: EffectStatus = EffectStatus.CONFIRMED) -> RunId:
    run_id = book.begin().run_id
    decided = Decision(run_id=run_id, decision_index=0, model="m", request_json="12345", rationale="678")
    book.write(decisions.record(book.snapshot, decided))
    effect = book.write(effects.begin(book.snapshot, EffectSpec(run_id=run_id, tool="wire", request_json="12")))
    if status is not EffectStatus.PENDING:
        book.write(effects.complete(book.snapshot, (run_id, effect.idempotency_key), status, "3"))
    return run_id


def compact(book: Book, run_id: RunId) -> Compaction:
    while (done := book.write(compaction.compact_batch(book.snapshot, run_id))) is None:
        pass
    return done


def test_bodies_go_and_the_envelope_stays() -> None:
    book = Book()
    run_id = worked(book)
    book.end(run_id, RunStatus.TERMINAL)

    report = compact(book, run_id)
    kept = DECISIONS.find(book.snapshot, decisions.key_of(run_id, 0))

    assert report == Compaction(decisions_zeroed=1, effects_zeroed=1, bytes_saved=8 + 3)
    assert kept is not None and (kept.model, kept.request_json, kept.rationale) == ("m", "", "")
    assert book.said("run") == ["running", "terminal", "compacted"]
    assert isinstance(book.events[-1].payload, dict) and isinstance(book.events[-1].payload["report"], dict)


def test_compacting_twice_does_nothing() -> None:
    book = Book()
    run_id = worked(book)
    book.end(run_id, RunStatus.TERMINAL)
    compact(book, run_id)

    assert compact(book, run_id) == Compaction(already_compacted=True)


def test_a_run_that_goes_on_is_not_compacted() -> None:
    book = Book()

    with pytest.raises(NotReady, match="not terminal"):
        compact(book, worked(book))


@pytest.mark.parametrize("status", [EffectStatus.PENDING, EffectStatus.UNKNOWN])
def test_a_run_with_an_open_effect_is_not_compacted(status: EffectStatus) -> None:
    book = Book()
    run_id = worked(book, status)
    book.end(run_id, RunStatus.TERMINAL)

    with pytest.raises(NotReady, match="not settled"):
        compact(book, run_id)


def test_a_run_that_owes_is_not_compacted() -> None:
    book = Book()
    run_id = worked(book)
    book.write(compensation.register(book.snapshot, run_id, "e", Compensation(kind="refund")))
    book.end(run_id, RunStatus.FAILED)

    with pytest.raises(NotReady, match="not settled"):
        compact(book, run_id)


def test_whoever_is_interrupted_goes_on_with_the_same_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH", 1)
    book = Book()
    run_id = worked(book)
    book.end(run_id, RunStatus.TERMINAL)

    assert book.write(compaction.compact_batch(book.snapshot, run_id)) is None
    report = compact(book, run_id)

    assert report == Compaction(decisions_zeroed=1, effects_zeroed=1, bytes_saved=11)


def test_an_effect_is_still_known_by_its_key_afterwards() -> None:
    book = Book()
    run_id = worked(book)
    book.end(run_id, RunStatus.TERMINAL)
    compact(book, run_id)

    effect: Effect = effects.begin(book.snapshot, EffectSpec(run_id=run_id, tool="wire")).result

    assert (effect.status, effect.response_json) == (EffectStatus.CONFIRMED, "")
