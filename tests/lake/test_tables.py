"""Tables are functions of the journal; entries that they cannot read are in quarantine, with the reason."""

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812

from tape.cli.demo.arena.producer import arena
from tape.core.ending import ending
from tape.core.event import Event
from tape.core.fork import Fork
from tape.core.fork_request import fork_request
from tape.core.ids import RunId, Seq
from tape.lake import tables
from tape.lake.schema import COLUMNS, QUARANTINE, TABLES, spark_ddl
from tests.lake.frames import assert_rows, journal_of
from tests.lake.journals import ListSink

A, B, C = RunId("a"), RunId("b"), RunId("c")


def event(run_id: str, type: str, **payload: object) -> Event:
    return Event(run_id=run_id, type=type, payload=payload)  # type: ignore[arg-type]


def forked(child: RunId, parent: RunId, at_seq: int, **mutation: int) -> tuple[Event, ...]:
    return fork_request(child, Fork(parent, Seq(at_seq)), {**mutation} or None, "what if").events


def metric(run_id: str, turn: int, value: float, agent: str = "Ember", name: str = "prosperity") -> Event:
    return event(run_id, "metric", name=name, agent=agent, turn_num=turn, value=value)


def test_a_run_is_what_it_added_from_its_first_entry_to_its_last(spark: SparkSession) -> None:
    journal = journal_of(spark, event(A, "x"), event(B, "x"), event(A, "y"), *forked(C, A, 2), event(C, "x"))

    assert_rows(
        tables.runs(journal),
        (A, "open", None, None, 2, 0, 2_000, 2_000, 1, 3),
        (B, "open", None, None, 1, 1_000, 1_000, 0, 2, 2),
        (C, "open", A, 2, 2, 3_000, 4_000, 1_000, 4, 5),
    )


def test_the_last_entry_about_a_run_is_its_status_and_a_system_run_has_none(spark: SparkSession) -> None:
    states = [Event(run_id=A, kind="run", type=state, payload={}) for state in ("running", "terminal")]
    journal = journal_of(
        spark, *states, event(A, "x"), ending(B, "failed", "no"), Event(run_id="tape.value.0", kind="value", payload=1)
    )

    assert_rows(
        tables.runs(journal), (A, "terminal"), (B, "failed"), ("tape.value.0", "system"), columns="run_id status"
    )


def test_types_are_counted_by_the_minute(spark: SparkSession) -> None:
    journal = journal_of(spark, event(A, "x"), event(B, "x"), event(A, "y"), event(A, "x"), ms=25_000)

    assert_rows(
        tables.types_per_minute(journal),
        (0, "event", "x", 2),
        (0, "event", "y", 1),
        (60_000, "event", "x", 1),
    )


def test_subjects_are_counted_by_their_first_two_segments(spark: SparkSession) -> None:
    subjects = ("/a/b/c", "/a/b", "/a", "/a/bb/c")
    journal = journal_of(spark, *(Event(run_id=A, payload=1, subject=subject) for subject in subjects))

    assert_rows(tables.subjects_per_minute(journal), (0, "/a/b", 2), (0, "/a", 1), (0, "/a/bb", 1))


def test_models_are_added_up_by_run_without_rounding(spark: SparkSession) -> None:
    prompts = [event(A, "llm_prompt", model="m", tokens=100), event(A, "llm_prompt", model="n", tokens=7)]
    answers = [event(A, "llm_response", model="m", tokens=10, cost_usd=0.1) for _ in range(10)]
    journal = journal_of(spark, *prompts, *answers, event(B, "llm_response", model="m", tokens=1, cost_usd=2))

    assert_rows(
        tables.model_usage(journal), (A, "m", 10, 100, 100, 1.0), (A, "n", 0, 7, 0, 0.0), (B, "m", 1, 0, 1, 2.0)
    )


def test_tools_are_counted_by_what_came_of_them(spark: SparkSession) -> None:
    asked = [event(A, "action", tool="dig") for _ in range(3)]
    results = [event(A, "action_result", tool="dig", ok=ok) for ok in (True, False)]
    journal = journal_of(spark, *asked, *results, event(B, "action_result", tool="rest", ok=True))

    assert_rows(tables.tool_usage(journal), (A, "dig", 3, 1, 1), (B, "rest", 0, 1, 0))


def test_of_two_metrics_of_one_turn_the_later_one_counts(spark: SparkSession) -> None:
    journal = journal_of(spark, metric(A, 1, 5), metric(A, 1, 3), metric(A, 2, 4.5), metric(A, 1, 9, name="noise"))

    assert_rows(
        tables.metrics(journal),
        (A, "prosperity", "Ember", 1, 3.0),
        (A, "prosperity", "Ember", 2, 4.5),
        (A, "noise", "Ember", 1, 9.0),
    )


def test_a_fork_is_compared_with_its_parent_after_the_last_turn_of_both(spark: SparkSession) -> None:
    parent = [metric(A, 1, 10), metric(A, 2, 20), metric(A, 2, 21, "Oak"), metric(A, 3, 30)]
    child = [*forked(B, A, 1, food=0), metric(B, 2, 5), metric(B, 2, 22, "Oak")]
    journal = journal_of(spark, *parent, *child)

    assert_rows(
        tables.forks(journal),
        (B, A, 1, 1, 0, 4_000, "what if", '{"food":0}', "Ember", 2, 20.0, 5.0, -15.0),
        (B, A, 1, 1, 0, 4_000, "what if", '{"food":0}', "Oak", 2, 21.0, 22.0, 1.0),
    )


def test_a_fork_without_metrics_has_a_row_without_an_agent(spark: SparkSession) -> None:
    journal = journal_of(spark, metric(A, 1, 10), *forked(B, A, 1), *forked(C, B, 1))

    assert_rows(
        tables.forks(journal),
        (B, A, 1, 1, None, None, None),
        (C, B, 1, None, None, None, None),
        columns="run_id parent_run_id at_seq parted_global_seq mutation_json agent difference",
    )


REFUSED: list[tuple[str, object, str, str]] = [
    ("llm_response", {"model": "m", "tokens": 1}, "model_usage", "cost_usd is missing"),
    ("llm_response", {"model": "m", "tokens": "1", "cost_usd": 1}, "model_usage", "tokens is not a whole number"),
    ("llm_response", {"model": "m", "tokens": -1, "cost_usd": 1}, "model_usage", "tokens is not a whole number"),
    ("llm_response", {"model": "m", "tokens": 2**63 - 1, "cost_usd": 1}, "model_usage", "tokens is not a whole number"),
    ("llm_response", {"model": "m", "tokens": 1, "cost_usd": 1e308}, "model_usage", "cost_usd is not a number"),
    ("llm_prompt", {"model": 7, "tokens": 1}, "model_usage", "model is not text"),
    ("llm_prompt", {"model": None, "tokens": 1}, "model_usage", "model is not text"),
    ("action", ["dig"], "tool_usage", "tool is missing"),
    ("action_result", {"tool": "dig", "ok": 1}, "tool_usage", "ok is not true or false"),
    ("metric", b"\0", "metrics", "the payload is not JSON"),
    (
        "metric",
        {"name": "prosperity", "agent": "x", "turn_num": 1.5, "value": 1},
        "metrics",
        "turn_num is not a whole number",
    ),
]


def test_an_entry_that_a_table_cannot_read_is_in_quarantine_with_the_reason(spark: SparkSession) -> None:
    events = [_event(name, payload) for name, payload, _, _ in REFUSED]
    journal = journal_of(spark, *events).cache()

    rows = [
        (place, table, reason, event.content[11])
        for place, ((_, _, table, reason), event) in enumerate(zip(REFUSED, events, strict=True), 1)
    ]

    short = F.regexp_replace("reason", " from 0 to.*| up to.*| that Spark.*", "").alias("reason")
    assert_rows(tables.quarantine(journal).select("global_seq", "table", short, "payload_json"), *rows)
    assert_rows(tables.model_usage(journal))
    assert_rows(tables.tool_usage(journal))
    assert_rows(tables.metrics(journal))


def _event(type: str, payload: object) -> Event:
    content_type = "application/x-blob" if isinstance(payload, bytes) else "application/json"
    return Event(run_id=A, type=type, payload=payload, content_type=content_type)  # type: ignore[arg-type]


def test_the_journal_is_read_once_for_quarantine(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    tables.quarantine(journal_of(spark, event(A, "action"))).explain()

    assert capsys.readouterr().out.count("Scan") == 1


def test_every_entry_of_the_arena_is_read(spark: SparkSession) -> None:
    journal = journal_of(spark, *arena_events(3))

    assert_rows(tables.quarantine(journal))
    assert_rows(tables.metrics(journal).groupBy("agent").count(), *arena_metric_counts(3), columns="count")


def test_every_declared_table_is_defined_and_has_the_declared_columns(spark: SparkSession) -> None:
    journal = spark.createDataFrame([], spark_ddl())

    frames = {name: define(journal) for name, define in tables.DEFINITIONS.items()} | {
        "quarantine": tables.quarantine(journal)
    }

    assert {name: frame.schema.simpleString() for name, frame in frames.items()} == {
        name: f"struct<{ddl.lower().replace(' ', ':').replace(',:', ',')}>"
        for name, ddl in {**TABLES, "quarantine": QUARANTINE}.items()
    }


def test_a_failing_comparison_prints_its_difference(spark: SparkSession) -> None:
    frame: DataFrame = journal_of(spark, event(A, "x"))

    with pytest.raises(AssertionError, match=r"(?s)the rows differ.*-b \| x\n\+a \| x"):
        assert_rows(frame, (B, "x"), columns="run_id type")


def test_the_names_of_journal_columns_are_columns_of_the_journal() -> None:
    from tape.lake import schema

    named = (value for name, value in vars(schema).items() if name.isupper() and name.lower() == value)

    assert set(named) <= set(COLUMNS)


def arena_events(n_turns: int) -> list[Event]:
    sink = ListSink("arena")
    arena((), None, n_turns, sink)
    return sink


def arena_metric_counts(n_turns: int) -> list[tuple[int]]:
    agents = {event.subject.split("/")[2] for event in arena_events(n_turns) if event.type == "metric"}
    return [(n_turns,) for _ in agents]
