"""Compares the decisions and effects of two runs, place by place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from tape.core.decision import Decision
from tape.core.effect import Effect
from tape.core.fork_policy import key_in
from tape.core.ids import RunId

What: TypeAlias = Literal["decision", "effect"]

HERE: Final = "."  # replaces the run id in an effect's key
MUTATION: Final = "mutation"


class Side(NamedTuple):
    """One run's decision or effect: status, request and response."""

    status: str
    request_json: str
    response_json: str


class LedgerRow(NamedTuple):
    """A decision or effect of each run at the same place; None if a run has none there."""

    what: What
    place: str
    name: str
    one: Side | None
    other: Side | None

    @property
    def is_same(self) -> bool:
        return self.one == self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class RunActions:
    """The decisions and effects of a run."""

    run_id: RunId
    decisions: Sequence[Decision] = ()
    effects: Sequence[Effect] = ()


def compare_actions(one: RunActions, other: RunActions) -> tuple[LedgerRow, ...]:
    """Every place that either run reached, each decision before its effects."""
    mine, theirs = _places(one), _places(other)
    order = sorted({**mine, **theirs}, key=lambda place: (place.decision_index, place.what != "decision"))
    return tuple(_row(place, mine.get(place), theirs.get(place)) for place in order)


class _Place(NamedTuple):
    what: What
    key: str
    name: str
    decision_index: int


def _row(place: _Place, one: Side | None, other: Side | None) -> LedgerRow:
    return LedgerRow(place.what, place.key, place.name, one, other)


def _places(books: RunActions) -> dict[_Place, Side]:
    return {**dict(_decided(books.decisions)), **dict(_done(books.effects, books.run_id))}


def _decided(decisions: Iterable[Decision]) -> Iterable[tuple[_Place, Side]]:
    for each in decisions:
        place = _Place("decision", str(each.decision_index), each.model, each.decision_index)
        yield place, Side("recorded", each.request_json, each.response_json)


def _done(effects: Iterable[Effect], run_id: RunId) -> Iterable[tuple[_Place, Side]]:
    """The mutation is stored among the effects but is none."""
    for each in effects:
        if each.tool != MUTATION:
            key = key_in(each.idempotency_key, run_id, HERE).removeprefix(f"{HERE}/")
            place = _Place("effect", key, each.tool, each.decision_index)
            yield place, Side(each.status.value, each.request_json, each.response_json or each.error_json)
