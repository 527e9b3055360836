"""Predicates: their variables, their results, and which of them are refused."""

import os
import pickle
import re
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tape.core.errors import UsageError
from tape.core.predicate import regex
from tape.core.predicate.ast import Call, Comprehension, Const, CreateList, CreateMap, Ident, Select, descend
from tape.core.predicate.predicate import MATCH, NO_MATCH, Predicate, Verdict, bind

CEL_SPEC = os.environ.get("TAPE_TEST_CEL_SPEC", "")
SPEC_CASE = re.compile(r'expr: ("(?:[^"\\]|\\.)*")\s+value: \{ bool_value: (true|false) \}')
STATM = Path("/proc/self/statm")
MIB = 1 << 20
EIGHT_CHANGES = " && ".join(f"payload.old.{field} != payload.new.{field}" for field in "abcdefgh")
MANY_SIZES = " && ".join(["size(payload.s) > 0"] * 21)


class Seen(NamedTuple):
    payload: object = None
    global_seq: int = 42
    run_id: str = "r-1"
    seq: int = 7
    kind: str = "effect"
    type: str = "order.placed"
    subject: str = "/tape/effect/confirmed/x"
    ts_ms: int = 1_700_000_000_000
    schema_version: int = 1
    trace_id: str = "0af7651916cd43dd8448eb211c80319c"
    prev_value_json: str = ""


def judge(text: str, payload: object = None, prev_value_json: str = "") -> Verdict:
    return Predicate(text).evaluate(bind(Seen(payload, prev_value_json=prev_value_json)))


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_a_blank_predicate_holds_for_every_entry(text: str) -> None:
    predicate = Predicate(text)

    assert predicate.is_blank
    assert predicate.expression is None
    assert predicate.evaluate(bind(Seen())) is MATCH


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "global_seq == 42 && seq == 7 && schema_version == 1 && ts_ms == 1700000000000",
        "run_id == 'r-1' && kind == \"effect\" && subject.startsWith('/tape/effect/') && trace_id.size() == 32",
        "type == 'order.placed'",
        "type(seq) == int && type(type) == string",
        "prev_value_json == ''",
        "payload.all(type, type != 'seq')",
    ],
)
def test_every_field_of_the_envelope_is_a_variable(text: str) -> None:
    assert judge(text, payload={"tool": "execute_sweep"}) is MATCH


@pytest.mark.parametrize(
    ("value_json", "before", "matched"), [("101.5", "100", True), ("101.5", "101.5", False), ("99", "", False)]
)
def test_a_changed_value_above_a_bound_matches(value_json: str, before: str, matched: bool) -> None:
    text = "payload.value.value_json != prev_value_json && double(payload.value.value_json) > 100.0"

    verdict = judge(text, {"value": {"value_json": value_json}}, before)

    assert verdict == Verdict(matched=matched)


@pytest.mark.parametrize(("value_json", "matched"), [("1.2", True), ("1.10", False), ("-3", False)])
def test_a_rate_above_a_bound_matches(value_json: str, matched: bool) -> None:
    verdict = judge("double(payload.value.value_json) > 1.10", {"value": {"value_json": value_json}})

    assert bool(verdict) is matched


def test_of_two_tools_only_the_named_one_matches() -> None:
    predicate = Predicate('payload.tool == "execute_sweep"')

    verdicts = [predicate.evaluate(bind(Seen({"tool": tool}))) for tool in ("execute_sweep", "read_balance")]

    assert verdicts == [MATCH, NO_MATCH]


def test_one_activation_serves_many_predicates() -> None:
    activation = bind(Seen({"amount": 700.5}))

    verdicts = [Predicate(f"payload.amount > {bound}.0").evaluate(activation) for bound in (500, 700, 900)]

    assert verdicts == [MATCH, MATCH, NO_MATCH]


@pytest.mark.parametrize(
    ("text", "payload", "error"),
    [
        ("payload.missing > 1", {}, "Key not found"),
        ("has(payload.a.b)", {}, "Key not found"),
        ("payload.a.b.c.d > 1", {"a": 1}, "SELECT to non-message"),
        ("payload.a / 0 > 1", {"a": 1}, "divide by zero"),
        ("payload.a + 1 > 1", {"a": 2**63 - 1}, "overflow"),
        ("-payload.a > 1", {"a": -(2**63)}, "overflow"),
        ("payload.l[3] == 1", {"l": [1]}, "index=3 size=1"),
        ("payload.a > 'a'", {"a": 1}, "No matching overload"),
        ("double(payload.a) > 1.0", {"a": "x"}, "cannot convert"),
        ("payload.a > 1", None, "SELECT to non-message"),
        ("payload.a > 1", b"\x00raw", "SELECT to non-message"),
        ("payload.a > 1", [1], "SELECT to non-message"),
        ("payload.a", {"a": "true"}, "STRING, not a BOOL"),
        ("payload.a", {"a": [1]}, "LIST<DYN>, not a BOOL"),
        ("payload.a", {"a": None}, "NULL, not a BOOL"),
        ("payload.l.all(x, x > 0)", {"l": [1] * 10_001}, "Iteration budget exceeded"),
        ("payload[payload.key] == 1", {"key": "k" * 5_000}, "Key not found"),
    ],
)
def test_a_predicate_that_errs_matches_nothing_and_reports_the_error(text: str, payload: object, error: str) -> None:
    verdict = judge(text, payload)

    assert not verdict.matched
    assert verdict.error is not None and error in verdict.error
    assert len(verdict.error) <= 200


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("payload.a == 9223372036854775807", {"a": 2**63 - 1}),
        ("payload.a == 18446744073709551615u", {"a": 2**64 - 1}),
        ("payload.a > 9223372036854775807", {"a": 2**63}),
        ("payload.a == 1.0", {"a": 1}),
        ("payload.a == null", {"a": None}),
        ("payload == null", None),
        ("payload == null", b"\x00raw"),
        ("size(payload.a) == 2 && payload.a == 'é😀'", {"a": "é😀"}),
        ("payload['naïve key'] == 1", {"naïve key": 1}),
        ("payload.a", {"a": True}),
        ("payload.missing > 1 || true", {}),
        ("!(payload.missing > 1 && false)", {}),
        ("has(payload.a) && !has(payload.b)", {"a": 1}),
        ("payload.d.d.d.d.d.d.d.d == 'end'", {"d": {"d": {"d": {"d": {"d": {"d": {"d": {"d": "end"}}}}}}}}),
        ("payload.l.exists(i, i.id == payload.id && i.tier in ['a', 'b'])", {"l": [{"id": 1, "tier": "b"}], "id": 1}),
        ("['late', 'lost'].exists(word, payload.text.contains(word))", {"text": "it was lost"}),
        ("payload.tags.exists(t, t.matches('^v[0-9]+$'))", {"tags": ["x", "v12"]}),
        ("payload.a + payload.b + payload.c == 6", {"a": 1, "b": 2, "c": 3}),
        ("payload.first + ' ' + payload.last == 'Ada L'", {"first": "Ada", "last": "L"}),
        (EIGHT_CHANGES, {"old": dict.fromkeys("abcdefgh", 1), "new": dict.fromkeys("abcdefgh", 2)}),
    ],
)
def test_what_holds_matches(text: str, payload: object) -> None:
    assert judge(text, payload) is MATCH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("payload.a ==", "at 1:13: Syntax error"),
        ("(payload.a", "Syntax error"),
        ("true\n && nope", "at 2:5: undeclared reference to 'nope'$"),
        ("seq > 'a'", "no matching overload"),
        ("1 + 1", "at 1:3: the result is of type int, not bool"),
        ("'text'", "of type string, not bool"),
        ("[true]", "of type list, not bool"),
        ("\ud800 == 1", "not valid Unicode"),
        ("payload.s.matches('(a')", "at 1:19: invalid regular expression"),
        ("google.protobuf.Value{} == payload", "may not build 'google.protobuf.Value'"),
    ],
)
def test_a_mistake_is_refused_with_its_position(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Predicate(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("true || " * 600 + "true", "4804 bytes, the limit is 4096"),
        ("(" * 300 + "true" + ")" * 300, "too deeply, the limit is 32"),
        ("payload" + ".a" * 500 + " == 1", "too deeply, the limit is 32"),
        ("[" * 300 + "]" * 300 + " == payload", "too deeply, the limit is 32"),
        ("payload.l.all(x, " + "!(x == " * 15 + "x" + ")" * 15 + ")", "levels deep, the limit is 32"),
        (" || ".join(["seq == 1"] * 70), "279 nodes, the limit is 256"),
        ("payload.l.all(x, payload.l.all(y, x == y))", "inside another one"),
        ("payload.l.all(x, x.all(x, x))", "inside another one"),
        ("payload.l.all(x, " + " && ".join(["x == 1"] * 20) + ")", "the limit is 48"),
        ("payload.l.map(x, payload.s + payload.s) == []", "could grow inside a comprehension"),
        ("payload.l.map(x, payload.s + payload.s)", "could grow inside a comprehension"),
        ("payload.l.map(x, x).size() > 1", "map and filter"),
        ("payload.l.filter(x, x > 1).size() > 1", "map and filter"),
        ("payload.l.exists(x, x.a + x.b == 'ab')", "could grow"),
        ("payload.l.exists(x, payload.m + [x] == [])", "could grow"),
        ("payload.l.exists(x, x in [payload.a, payload.b])", "literals only"),
        ("payload.l.exists(x, {'a': x} == payload.m)", "literals only"),
        ("payload.s.matches(payload.r)", "matches takes a literal"),
        ("payload.l.exists(x, x.matches('a' + kind))", "could grow|takes a literal"),
        (f"payload.s.matches('{'a' * 257}')", "257 bytes, the limit is 256"),
        ("payload.s.matches('(a{30}){30}')", "900 steps"),
        (r"payload.s.matches('\\p{L}{100}')", "3200 steps"),
        (r"payload.s.matches('(a\\Q)\\E{9}b){9}')", "steps"),
        ("payload.l.exists(x, x.matches('[a-z]{20}'))", "80 steps"),
        ("timestamp(ts_ms).getHours(payload.zone) == 1", "getHours takes a literal"),
        (" + ".join(["payload.l"] * 20) + " == []", "the limit is 50"),
        (" + ".join(["string(payload.s)"] * 15) + " == ''", "the limit is 50"),
        ("payload.l.all(x, size(payload.s) > 1)", "'size', the limit is 50"),
        ("payload.l.all(x, x in payload.m)", "'@in', the limit is 50"),
        ("payload.l.all(x, payload.l == payload.m)", "'_==_', the limit is 50"),
        ("payload.l.all(x, payload.s.contains(x))", "'contains', the limit is 50"),
        ("payload.text.contains(payload.word)", "'contains', the limit is 50"),
        (f"payload.text.contains('{'a' * 3000}')", "'contains', the limit is 50"),
        (f"[{', '.join(['payload.s'] * 30)}].all(x, size(x) > 1) && {MANY_SIZES}", "the limit is 50"),
        (f"[{', '.join(['payload.l'] * 20)}] == [{', '.join(['payload.l'] * 20)}]", "the limit is 50"),
    ],
    ids=lambda text: text[:48],
)
def test_an_expression_built_to_hang_or_to_eat_memory_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Predicate(text)


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("payload.s.matches('(a+)+b')", {"s": "a" * MIB}),
        ("payload.s.matches('(a|b)*a[ab]{50}c')", {"s": "abaab" * (MIB // 5)}),
        ("payload == payload && payload == payload", [1] * (MIB // 2)),
        ("[] in payload || 'a' in payload || 2 in payload", [1] * (MIB // 2)),
        ("payload.l + payload.l == []", {"l": [1] * (MIB // 2)}),
        ("payload.all(x, !x.matches('[ab]{14}c'))", ["ab" * 45] * 9_999),
        ("payload.all(x, x.s.e && x.s.e && x.s.e && x.s.e && x.s.e && x.s.e)", [{"s": {"e": True}}] * 9_999),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_worst_that_is_accepted_stays_bounded(text: str, payload: object) -> None:
    predicate, activation = Predicate(text), bind(Seen(payload))
    started = time.process_time()

    predicate.evaluate(activation)

    assert time.process_time() - started < 60  # of CPU; refused ones take minutes or gigabytes


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("", 0),
        ("abc", 3),
        ("(ab{3}){2}", 8),
        ("[a-z]{4}", 4),
        ("a{2,5}", 5),
        ("a{3,}", 3),
        (r"\{9}", 3),
        (".", 4),
        ("[^a]", 4),
        (r"\pL", 32),
    ],
)
def test_repetitions_count_as_if_they_were_written_out(pattern: str, steps: int) -> None:
    assert regex.weight(pattern) == steps


def test_the_checked_tree_can_be_read() -> None:
    text = "payload.l.exists(x, has(x.a)) && payload.b in [-1, 2u, 1.5, 'é', b'y', true, null] && type != {1: kind}[1]"

    nodes = list(descend(Predicate(text).expression or pytest.fail("blank")))

    lists = [node.elements for node in nodes if isinstance(node, CreateList)]
    assert {type(node) for node in nodes} == {Call, Comprehension, Const, CreateList, CreateMap, Ident, Select}
    assert [part.value for part in lists[0] if isinstance(part, Const)] == [-1, 2, 1.5, "é", b"y", True, None]
    assert {node.name for node in nodes if isinstance(node, Ident)} >= {"entry.payload", "entry.type", "x"}
    assert [node.field for node in nodes if isinstance(node, Select) and node.is_test] == ["a"]


def test_a_node_knows_its_type_its_place_and_its_overloads() -> None:
    tree = Predicate("seq > 1 &&\n  payload.n + 1.5 > 2.0").expression

    sums = [node for node in descend(tree or pytest.fail("blank")) if isinstance(node, Call) and node.function == "_+_"]

    assert [(node.type, node.position, node.overloads) for node in sums] == [("double", "2:13", ("add_double",))]


def test_a_predicate_travels_as_its_text() -> None:
    predicate = pickle.loads(pickle.dumps(Predicate("payload.a > 1")))

    assert repr(predicate) == "Predicate('payload.a > 1')"
    assert predicate.evaluate(bind(Seen({"a": 2}))) is MATCH


@pytest.mark.skipif(not STATM.exists(), reason="only Linux tells how much memory is resident now")
def test_a_hundred_thousand_evaluations_leave_nothing_behind() -> None:
    predicate, failing = Predicate("string(payload.a) + 'b' == 'ab'"), Predicate("payload.missing == 1")
    before = evaluate_many(20_000, predicate, failing)

    after = evaluate_many(100_000, predicate, failing)

    assert after - before < 4 * MIB


def test_importing_predicates_loads_no_cel() -> None:
    program = (
        "import sys, tape.core.predicate.predicate as p; p.Predicate(' '); assert 'cel_expr_python' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_missing_package_is_named_with_its_extra() -> None:
    program = (
        "import sys, tape.core.predicate.predicate as p; sys.modules['cel_expr_python'] = None; p.Predicate('true')"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "UsageError: predicates need the package cel-expr-python; install tape-bus[cel]" in ended.stderr


@pytest.mark.skipif(not CEL_SPEC, reason="TAPE_TEST_CEL_SPEC names no folder with the CEL specification's cases")
def test_the_specification_s_own_cases_hold_where_they_are_admitted() -> None:
    admitted = {text: expected for text, expected in spec_cases() if is_admitted(text)}

    verdicts = {text: judge(text) for text in admitted}

    assert {text: verdict for text, verdict in verdicts.items() if verdict != Verdict(matched=admitted[text])} == {}
    assert len(admitted) > 200


def evaluate_many(times: int, *predicates: Predicate) -> int:
    """Resident bytes after a number of evaluations, a new activation for every tenth."""
    for _ in range(times // 10):
        activation = bind(Seen({"a": "a"}))
        for predicate in predicates * (10 // len(predicates)):
            predicate.evaluate(activation)
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def spec_cases() -> Iterator[tuple[str, bool]]:
    for path in sorted(Path(CEL_SPEC).glob("*.textproto")):
        for expression, expected in SPEC_CASE.findall(path.read_text()):
            yield literal_eval(expression), expected == "true"


def is_admitted(text: str) -> bool:
    try:
        Predicate(text)
    except UsageError:
        return False
    return True
