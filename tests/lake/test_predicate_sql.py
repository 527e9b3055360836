"""A predicate has the same result for every entry in Spark SQL, in a UDF and live."""

import os
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.lake.sql.predicate import PartRoute, explain
from tape.lake.sql.regex import to_java
from tests.conftest import Scale
from tests.lake import cel_spec
from tests.lake.agreement import Agreement, outcome
from tests.lake.expressions import RandomPredicates

CEL_SPEC = os.environ.get("TAPE_TEST_CEL_SPEC", "")
NOT_IN_THE_EVALUATOR = {"dyn({0: 1, 0u: 2}[0.0]) == dyn(0)"}  # it treats 0 and 0u as two keys
ENTRIES = 200
BATCH = 25
PAIRS = 10_000

# Cases that random expressions reach too rarely, each with a payload that decides it.
CORNERS: list[tuple[str, JsonValue]] = [
    ("(payload.a + 4611686018427387904) + 4611686018427387904 > 0", {"a": -1}),
    ("payload.a * 3037000500 > 0", {"a": 3037000500}),
    ("payload.a / -1 == 1", {"a": -(2**63)}),
    ("payload.a % -1 == 0", {"a": -(2**63)}),
    ("payload.a % payload.b == 0", {"a": 5, "b": 0}),
    ("payload.a % payload.b == 1", {"a": 5, "b": 2}),
    ("-payload.a == 1 || -seq == -1", {"a": 1}),
    ("payload.a == 9007199254740993", {"a": 2**53 + 1}),
    ("payload.a == 9007199254740992", {"a": 2**53 + 1}),
    ("payload.a == 9007199254740992.0", {"a": 2**53 + 1}),
    ("payload.a < payload.b", {"a": 2**53, "b": 2**53 + 1}),
    ("payload.a < payload.b", {"a": float(2**53), "b": 2**53 + 1}),
    ("int(payload.a) == 1", {"a": -(2.0**63)}),
    ("int(payload.a) > 1", {"a": 9223372036854774784.0}),
    ("payload.a * 1e300 - payload.a * 1e300 == 0.0", {"a": 1e300}),
    ("payload.a * 1e300 - payload.a * 1e300 != payload.b", {"a": 1e300, "b": 1}),
    ("payload.a * 1e300 - payload.a * 1e300 < payload.missing", {"a": 1e300}),
    ("1.0 / payload.a < 0.0", {"a": -0.0}),
    ("payload.s < payload.t", {"s": "\uffff", "t": "😀"}),
    ("size(payload.s) == 2", {"s": "é😀"}),
    ("payload.m['${x}'] == '${x}'", {"m": {"${x}": "${x}"}}),
    ("payload['\"'] == 1 && payload[''] == 2", {'"': 1, "": 2}),
    ("payload.a.b.c == 1", {"a": {"b": {"c": 1}}}),
    ("payload.l.exists(e, e > 1)", {"l": [1] * 301}),
    ("payload.l.all(e, e.k > 0) || payload.l.exists(e, e.k == 'a')", {"l": [{"k": 1}, {"k": "a"}, 3]}),
    ("payload.m.exists(e, e == 'k')", {"m": {"k": 1}}),
    ("payload == null || payload.a == null", None),
    ("1 in payload.m || 'k' in payload.m", {"m": {"k": 1}}),
    ("null in payload.l && !(2 in payload.l)", {"l": [None, 1]}),
    ("payload.s.matches('^a.b$') || payload.s.matches('a$')", {"s": "a\nb\na\n"}),
    ("payload.s.matches('^.$')", {"s": "😀"}),
    (r"payload.s.matches('[\\-\\]x]')", {"s": "-1"}),
    ("double(payload.s) == 16.0", {"s": "0x10"}),
    ("string(payload.a) == '1'", {"a": 1.0}),
    ("payload.a[0][0][0] == payload.b", {"a": literal_eval("[" * 62 + "]" * 62), "b": []}),
]
# The same, apart because every predicate reads every payload beside it.
LARGE_CORNERS: list[tuple[str, JsonValue]] = [
    ("payload.l.all(e, e > 0)", {"l": [1] * 10_001}),
    ("payload.l[399999] == 1 && size(payload.l) == 400000", {"l": [1] * 400_000}),
    ("payload.k9999 == 9999 && size(payload) == 10000", {f"k{number}": number for number in range(10_000)}),
    ("payload.s.endsWith('é') && payload.s.matches('^[a-z]+.$')", {"s": "a" * 1_000_000 + "é"}),
]


def test_the_compiled_the_udf_and_the_live_evaluator_agree(spark: SparkSession, scale: Scale) -> None:
    agreement = Agreement(spark)

    for seed in range(scale(PAIRS / (ENTRIES * BATCH))):
        maker = RandomPredicates(seed)
        agreement.compare([maker.predicate() for _ in range(BATCH)], maker.entries(ENTRIES))

    print(dict(agreement.tally))
    assert agreement.differences == []
    assert (
        min(agreement.tally[outcome_name] for outcome_name in ("true", "false", "error"))
        > agreement.tally["pairs"] / 10
    )
    assert agreement.tally["native predicates"] > agreement.tally["predicates"] / 2


@pytest.mark.parametrize("corners", [CORNERS, LARGE_CORNERS], ids=["small", "large"])
def test_they_agree_in_every_corner(spark: SparkSession, corners: list[tuple[str, JsonValue]]) -> None:
    agreement = Agreement(spark)

    agreement.compare([text for text, _ in corners], list(corner_entries(corners)))

    assert agreement.differences == []


def test_java_finds_what_re2_finds(spark: SparkSession, scale: Scale) -> None:
    maker, agreement = RandomPredicates(seed=3), Agreement(spark)

    agreement.compare([maker.regex() for _ in range(scale(60))], maker.short_texts(400))

    assert agreement.differences == []
    assert agreement.tally["native predicates"] > agreement.tally["predicates"] / 4


@pytest.mark.skipif(not CEL_SPEC, reason="TAPE_TEST_CEL_SPEC names no folder with the CEL specification's cases")
def test_the_specification_s_cases_hold_in_the_evaluator_and_in_sql(spark: SparkSession) -> None:
    cases = [case for case in cel_spec.cases(Path(CEL_SPEC)) if case.text not in NOT_IN_THE_EVALUATOR]
    agreement = Agreement(spark)

    agreement.compare([case.text for case in cases], RandomPredicates(seed=1).entries(1))

    print(dict(agreement.tally))
    assert [case for case in cases if list(map(outcome, agreement.verdicts[case.text])) != [case.expected]] == []
    assert agreement.differences == []
    assert len(cases) > 600 and agreement.tally["native predicates"] > 300


@pytest.mark.parametrize(
    ("pattern", "java"),
    [
        ("^a.b$", r"\Aa[^\n]b\z"),
        (r"^(?:x|y-z)\.$", r"\A(?:x|y\-z)\.\z"),
        (r"^[^a-z&&_-]+$", r"\A[^a-z\&\&\_\-]+\z"),
        (r"[\-\]x-]", r"[\-\]x\-]"),
        (r"\s\d", "[\\t\\n\\f\\r ][0-9]"),
    ],
)
def test_a_regular_expression_is_rewritten_for_java(pattern: str, java: str) -> None:
    assert to_java(pattern) == java


@pytest.mark.parametrize(
    "pattern",
    ["a*b", "^a*b*", "(a|b)(a|b)", "(ab)+", r"\bx", r"\pL", "(?i)a", "é", "[[:alpha:]]", "a{65}", "^(a|b)*$", "a++"],
)
def test_a_regular_expression_that_java_might_read_otherwise_or_slowly_is_left_alone(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"Java|repeated"):
        to_java(pattern)


@pytest.mark.parametrize(
    ("text", "substrings"),
    [
        ("payload.status == 'late'", {'"status":"late"'}),
        ("payload.user.id == 7", {'"user":', '"id":7'}),
        ("payload.amount == 0 || payload.is_open", set()),
        ("double(payload.amount) > 1.0", {'"amount":'}),
        ("has(payload.user.id)", {'"user":', '"id":'}),
        ("!has(payload.user.id)", {'"user":'}),
        ("payload.is_open", {'"is_open":true'}),
        ("payload.name == 'Ada \"L\"' && payload.x == -1", {'"name":', '"x":'}),
        ("payload.items.exists_one(e, e.id == 1)", {'"items":'}),
    ],
)
def test_a_payload_without_what_a_condition_needs_is_not_parsed(text: str, substrings: set[str]) -> None:
    assert {substring for part in explain(text) for substring in part.substrings} == substrings


def test_sql_that_would_grow_without_bound_is_left_to_the_evaluator() -> None:
    text = "payload.a" + " % (payload.a" * 14 + ")" * 14 + " == 0"

    [part] = explain(text)

    assert part.route is PartRoute.EVALUATOR
    assert "longer than" in part.reason


def corner_entries(corners: list[tuple[str, JsonValue]]) -> Iterator[Entry]:
    for number, (_, payload) in enumerate(corners, start=1):
        yield Event(run_id="r", payload=payload).at(number, number, 0, 0, Epoch(1))
