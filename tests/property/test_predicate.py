"""No expression and no payload can do more than be refused, match, or not match."""

import json
import time
from typing import NamedTuple

from hypothesis import example, given, strategies as st

from tape.core.errors import UsageError
from tape.core.predicate.ast import Call, Const
from tape.core.predicate.predicate import Predicate, Verdict, bind

BOUND_S = 60  # of CPU: what is not bounded takes for ever
TOKENS = """
payload .l .s ['k'] [0] seq kind type prev_value_json x true null 1 -1 1.5 2u 'a' '' b'z' ( ) [ ] { } : , ? ! - + * / %
== != < >= && || in .all(x, .exists(x, .map(x, .filter(x, .exists_one(x, has( size( string( double( int( timestamp(
dyn( type( .matches( .contains( '(a+)+b'
"""

leaves = st.sampled_from(
    "payload payload.l payload.s payload.m.k seq kind x 1 -9 0 1.5 'a' '' true null [] prev_value_json".split()
)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
ints = st.integers(-(2**63), 2**63 - 1)
payload_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)  # as the codec lets in
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | payload_texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("lsmkx") | payload_texts, inner, max_size=4)
    ),
    max_leaves=20,
)


class Seen(NamedTuple):
    payload: object = None
    global_seq: int = 1
    run_id: str = "r-1"
    seq: int = 1
    kind: str = "event"
    type: str = "message"
    subject: str = "/a"
    ts_ms: int = 0
    schema_version: int = 1
    trace_id: str = ""
    prev_value_json: str = ""


def composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["==", "!=", "<", ">=", "&&", "||", "+", "-", "*", "/", "%", "in"])
    function = st.sampled_from(
        ["size", "string", "double", "int", "bool", "duration", "timestamp", "dyn", "type", "!", "-"]
    )
    macro = st.sampled_from(["all", "exists", "exists_one", "map", "filter"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, binary, inner),
        st.builds("{}({})".format, function, inner),
        st.builds("{}.{}(x, {})".format, inner, macro, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}.{}({})".format, inner, st.sampled_from(["contains", "startsWith", "matches"]), inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("has({}.k)".format, inner),
    )  # fmt: skip


conditions = st.recursive(leaves, composed, max_leaves=12)
fragments = st.lists(st.sampled_from(TOKENS.split()), max_size=30).map(" ".join)


@given(conditions | fragments | texts, json_values)
@example("payload.l.all(x, payload.s.matches('(a+)+b'))", {"l": [1] * 9_000, "s": "a" * 100_000})
@example("payload.l.map(x, payload.s + payload.s)", {"l": [1] * 9_000, "s": "a" * 100_000})
def test_an_expression_is_refused_or_answers_in_time(text: str, payload: object) -> None:
    started = time.process_time()

    verdict = judge(text, payload)

    assert verdict is None or (verdict.matched in (True, False) and not (verdict.matched and verdict.error))
    assert time.process_time() - started < BOUND_S


@given(texts | ints | st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_is_read_from_the_tree_as_it_was_written(value: str | float) -> None:
    tree = Predicate(f"payload == {json.dumps(value, ensure_ascii=False)}").expression

    assert isinstance(tree, Call)
    assert [operand.value for operand in tree.operands if isinstance(operand, Const)] == [value]


@given(json_values, json_values)
def test_two_parts_of_a_payload_are_equal_exactly_when_they_are_the_same_value(payload: object, other: object) -> None:
    verdicts = [judge("payload.a == payload.b", {"a": payload, "b": each}) for each in (payload, other)]

    assert verdicts == [Verdict(matched=True), Verdict(matched=is_same(payload, other))]


def judge(text: str, payload: object) -> Verdict | None:
    try:
        return Predicate(text).evaluate(bind(Seen(payload)))
    except UsageError:
        return None


def is_same(one: object, other: object) -> bool:
    """Equality of JSON values, where true is not 1."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case list(), list():
            return len(one) == len(other) and all(map(is_same, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
        case _:
            return one == other
