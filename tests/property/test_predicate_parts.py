"""Each part of a predicate has the value that it has by itself."""

from dataclasses import fields

from tape.core.event import Event
from tape.core.ids import Epoch
from tape.core.predicate.ast import Expression
from tape.core.predicate.parts import parts
from tape.core.predicate.predicate import Predicate, bind
from tape.core.predicate.text import text_of
from tests.conftest import Scale
from tests.lake.expressions import RandomPredicates

HARDER = [
    "payload.l.exists(e, e == 1) && payload.l.all(e, e > 0 || e < -1)",
    "-payload.i < 1 ? true : !payload.b",
    "payload['it\\'s'] in [1, 2u, 3.5, b'ab\\x00', 'q\"\\n']",
    "timestamp('2020-01-01T00:00:00Z') < timestamp(payload.t) && {'a': 1}.a == 1",
    "(payload.i + 1) * 2 - (3 - 2) == -5 && type(payload.x) == int && has(payload.m.k)",
    "payload.l.exists_one(e, has(e.k) && e.k == null)",
]


def test_a_tree_written_as_text_is_the_same_tree_again(scale: Scale) -> None:
    maker = RandomPredicates(seed=3)
    for text in [*HARDER, *(maker.predicate() for _ in range(scale(300)))]:
        tree = Predicate(text).expression
        if tree is not None:
            again = Predicate(text_of(tree)).expression

            assert again is not None and shape(again) == shape(tree), text


def test_the_whole_is_the_first_part_and_agrees_with_the_matcher(scale: Scale) -> None:
    maker = RandomPredicates(seed=4)
    predicates = [Predicate(maker.predicate()) for _ in range(scale(60))]
    for entry in maker.entries(20):
        for predicate in predicates:
            verdict = predicate.evaluate(bind(entry))
            first = parts(predicate, bind(entry))[0]

            assert (first.value == "true") == verdict.matched, (predicate, first)
            assert verdict.error is None or first.error == verdict.error or "not a BOOL" in verdict.error


def test_each_part_has_its_place_its_text_and_its_value() -> None:
    entry = Event(run_id="r", payload={"i": 7}).at(1, 1, 1, 0, Epoch(1))

    found = parts(Predicate("payload.i > 1 && payload.q == 'x'"), bind(entry))

    assert [(part.position, part.text, part.value) for part in found] == [
        ("1:15", '(payload.i > 1) && (payload.q == "x")', None),
        ("1:11", "payload.i > 1", "true"),
        ("1:8", "payload.i", "7"),
        ("1:28", 'payload.q == "x"', None),
        ("1:25", "payload.q", None),
    ]
    assert all("q" in (part.error or "") for part in found if part.value is None)


def shape(node: Expression) -> object:
    """The tree without its positions."""
    values = [getattr(node, field.name) for field in fields(node) if field.name not in ("position", "overloads")]
    return type(node).__name__, [_shape(value) for value in values]


def _shape(value: object) -> object:
    if isinstance(value, tuple):
        return [_shape(each) for each in value]
    return shape(value) if hasattr(value, "position") else repr(value)  # type: ignore[arg-type]
