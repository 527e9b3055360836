"""History on Spark: exactly the entries that the live matcher would have matched, and exactly its errors."""

from collections import Counter
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tape.core.errors import UsageError
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.core.subject import Pattern
from tape.lake.schema import COLUMNS, spark_ddl
from tape.lake.search.history import errors, errors_by_cause, history, subject_condition
from tape.lake.sql.predicate import PartRoute, explain
from tests.conftest import Scale
from tests.lake.expressions import RandomPredicates

ENTRIES = 300
PREDICATES = {
    "blank": "",
    "native": "type == 'tick' && payload.i > 0 && payload.s != 'a'",
    "in doubt": "double(payload.s) > 1.0 || payload.x == payload.y",
    "evaluator": "payload.l.exists_one(e, e == 1)",
    "both": "payload.b && type(payload.x) == string",
    "both, in doubt": "payload.l.exists(e, e == 1) && size(payload.l + [1]) > 2",
    "columns only": "type == 'tick' || seq == 7",
    "always an error": "payload.i / 0 == 1",
}
SEGMENTS = ["a", "b", "a.b", "axb", "A", "b!c", "%2A", "_", "a$", "(a)", "[a]", "a+b", "a|b", "^a", "{2}", "%C3%A9"]


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return RandomPredicates(seed=7).entries(ENTRIES)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, entries: list[Entry]) -> DataFrame:
    return spark.createDataFrame([tuple(entry) for entry in entries], spark_ddl(COLUMNS))


@pytest.mark.parametrize("where", PREDICATES.values(), ids=PREDICATES)
def test_history_has_the_matches_and_the_errors_of_the_live_matcher(
    frame: DataFrame, entries: list[Entry], where: str
) -> None:
    live = judged(entries, where)
    matched = history(frame, "/tape/event/*/r-1", where)

    found, counted = matched.collect(), errors_by_cause(errors(frame, "/tape/event/*/r-1", where)).collect()

    assert matched.schema == frame.schema
    assert sorted(map(Entry._make, found)) == [entry for entry, verdict in live if verdict]
    assert {row["error"]: row["entries"] for row in counted} == Counter(each.error for _, each in live if each.error)


def test_a_cause_names_its_first_and_last_entry(frame: DataFrame, entries: list[Entry]) -> None:
    where = "payload.missing == 1 && payload.i / 0 == 1"
    errors_live = {entry.global_seq: verdict.error for entry, verdict in judged(entries, where)}
    [common] = [cause for cause, _ in Counter(errors_live.values()).most_common(1)]

    [row] = errors_by_cause(errors(frame, "/tape/event/*/r-1", where)).filter("error LIKE '%missing%'").collect()

    places = [place for place, cause in errors_live.items() if cause == common]
    assert (row["first_global_seq"], row["last_global_seq"]) == (min(places), max(places))


def test_the_value_before_is_read_from_its_column(spark: SparkSession) -> None:
    rows = [
        (*Event(run_id="r", payload={"v": "2"}).at(n, n, 0, 0, Epoch(1)), before) for n, before in [(1, "2"), (2, "1")]
    ]
    frame = spark.createDataFrame(rows, f"{spark_ddl(COLUMNS)}, prev_value_json STRING")

    native = history(frame, "/**", "payload.v != prev_value_json")
    asked = history(frame, "/**", "payload.v != prev_value_json && type(payload) == map")

    assert [row["global_seq"] for row in native.collect()] == [row["global_seq"] for row in asked.collect()] == [2]


def test_a_pattern_matches_the_same_subjects_in_spark(spark: SparkSession, scale: Scale) -> None:
    random = Random(7)
    subjects = sorted({"/" + "/".join(random.choices(SEGMENTS, k=random.randint(1, 4))) for _ in range(scale(200))})
    patterns = [random_pattern(random) for _ in range(60)]
    frame = spark.createDataFrame([(subject,) for subject in subjects], "subject STRING")

    rows = frame.select("subject", *(expr(subject_condition(pattern)) for pattern in patterns)).collect()

    expected = {subject: [pattern.matches(subject) for pattern in patterns] for subject in subjects}
    assert {subject: answers for subject, *answers in rows} == expected
    assert sum(map(sum, expected.values())) > len(subjects)


def test_what_spark_can_compare_reaches_the_files(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    history(frame, "/tape/event/tick/**", "type == 'tick' && payload.i > 0").explain()

    plan = capsys.readouterr().out

    assert "StartsWith(subject" in plan
    assert "Python" not in plan and "mapInArrow" not in plan.lower()


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        ("", []),
        ("payload.a == 1 && kind == 'event'", [PartRoute.NATIVE, PartRoute.NATIVE]),
        ("payload.a == 1 && payload.l.exists_one(e, e == 1)", [PartRoute.NATIVE, PartRoute.EVALUATOR]),
        ("payload.a == 1 || payload.l.exists_one(e, e == 1)", [PartRoute.EVALUATOR]),
        ("payload.s.matches('^(?:a|b)$') && payload.s.matches('(a+)+b')", [PartRoute.NATIVE, PartRoute.EVALUATOR]),
    ],
)
def test_explain_shows_what_evaluates_each_part(text: str, routes: list[PartRoute]) -> None:
    parts = explain(text)

    assert [part.route for part in parts] == routes
    assert all(part.reason for part in parts)


def test_what_could_not_be_registered_has_no_history(frame: DataFrame) -> None:
    with pytest.raises(UsageError, match="no matching overload"):
        history(frame, "/**", "seq > 'a'")


def random_pattern(random: Random) -> Pattern:
    segments = random.choices([*SEGMENTS, "*", "*", "*"], k=random.randint(0, 3))
    return Pattern("/" + "/".join([*segments, random.choice(["**", "*", "a", "b"])]))


def judged(entries: list[Entry], where: str) -> list[tuple[Entry, Verdict]]:
    """The live matcher's verdicts on the entries under a pattern."""
    pattern, predicate = Pattern("/tape/event/*/r-1"), Predicate(where)
    return [(entry, predicate.evaluate(bind(entry))) for entry in entries if pattern.matches(entry.subject)]
