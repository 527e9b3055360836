"""Derived tables on disk: up to a position, replaced as a whole, and views in SQL."""

import json
import os
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.core.errors import NotFound, Unavailable
from tape.core.event import Event
from tape.lake import derived_tables
from tape.lake.log import DeltaLog
from tests.lake.local_lake import fill, opened


def append(url: str, log: DeltaLog, *events: Event) -> None:
    """Appends, and syncs the lake."""
    anyio.run(partial(_append, url, log, events))


async def _append(url: str, log: DeltaLog, events: tuple[Event, ...]) -> None:
    async with opened(url) as (store, journal):
        await journal.append(list(events), open=True)
        await fill(store, log, url)


def action(tool: str, **payload: object) -> Event:
    return Event(run_id="a", type="action_result", payload={"tool": tool, **payload})  # type: ignore[dict-item]


def made(spark: SparkSession, log: DeltaLog, *names: str) -> list[derived_tables.TableUpdate]:
    return list(derived_tables.update_tables(log, lambda: nullcontext(spark), names or derived_tables.NAMES))


def test_a_table_is_as_of_the_position_that_the_lake_had_and_is_written_once(
    spark: SparkSession, url: str, log: DeltaLog
) -> None:
    append(url, log, action("dig", ok=True), action("dig", ok=False))

    first, again = made(spark, log, "tool_usage"), made(spark, log, "tool_usage")

    assert first == [("tool_usage", 2, 1, True)] and again == [("tool_usage", 2, 1, False)]
    assert derived_tables.rows_of(log.table.parent, "tool_usage") == [
        {"run_id": "a", "tool": "dig", "n_asked": 0, "n_ok": 1, "n_failed": 1}
    ]


def test_a_table_that_the_lake_has_left_behind_is_replaced_as_a_whole(
    spark: SparkSession, url: str, log: DeltaLog
) -> None:
    lake = log.table.parent
    append(url, log, action("dig", ok=True))
    made(spark, log, "tool_usage", "quarantine")
    (old,) = derived_tables.folder_of(lake, "tool_usage").glob("data/*")
    append(url, log, action("dig", ok=True), action("rest"))
    assert not derived_tables.are_current(log, ["tool_usage"])
    os.utime(old, (0, 0))

    assert made(spark, log, "tool_usage", "quarantine") == [("tool_usage", 3, 1, True), ("quarantine", 3, 1, True)]

    assert [row["n_ok"] for row in derived_tables.rows_of(lake, "tool_usage")] == [2] and not old.exists()
    assert [row["reason"] for row in derived_tables.rows_of(lake, "quarantine")] == ["ok is missing"]
    assert DeltaTable(lake / "quarantine").to_pyarrow_dataset().count_rows() == 1


def test_a_table_of_another_definition_is_written_again(
    spark: SparkSession, url: str, log: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(url, log, action("dig", ok=True))
    made(spark, log, "tool_usage")

    monkeypatch.setattr("tape.lake.derived_tables.DEFINITION", 1_000)

    assert [table.is_new for table in made(spark, log, "tool_usage")] == [True]


def test_a_table_that_cannot_be_written_is_refused_with_the_reason_and_stays_as_it_was(
    spark: SparkSession, url: str, log: DeltaLog
) -> None:
    append(url, log, action("dig", ok=True))
    made(spark, log, "tool_usage")
    append(url, log, action("dig", ok=True))
    (log.table / log.snapshot().files[-1].path).write_bytes(b"no Parquet")

    with pytest.raises(Unavailable, match="the table tool_usage was not written"):
        made(spark, log, "tool_usage")

    assert [row["n_ok"] for row in derived_tables.rows_of(log.table.parent, "tool_usage")] == [1]
    assert len(list(derived_tables.folder_of(log.table.parent, "tool_usage").glob("data/*"))) == 1


def test_a_table_that_was_never_made_is_not_found(log: DeltaLog) -> None:
    with pytest.raises(NotFound, match="tape lake tables"):
        derived_tables.rows_of(log.table.parent, "runs")


def test_a_query_sees_the_tables_as_views(
    spark: SparkSession, url: str, log: DeltaLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(url, log, action("dig", ok=True), action("rest"))
    where = ["--lake", str(log.table.parent), "--store", url, "--json"]

    assert run(["lake", "tables", "tool_usage", "quarantine", *where]) == 0
    updates = answers(capsys)
    question = "SELECT t.tool, q.reason, count(*) AS n FROM journal, tool_usage t, quarantine q GROUP BY ALL"
    assert run(["lake", "query", question, *where]) == 0

    assert updates == [
        {"name": "tool_usage", "through": 2, "rows": 1, "is_new": True},
        {"name": "quarantine", "through": 2, "rows": 1, "is_new": True},
    ]
    assert answers(capsys) == [{"tool": "dig", "reason": "ok is missing", "n": 2}]


def test_a_table_that_does_not_exist_is_refused_by_name(
    url: str, log: DeltaLog, capsys: pytest.CaptureFixture[str]
) -> None:
    append(url, log, action("dig", ok=True))

    assert run(["lake", "tables", "cats", "--lake", str(log.table.parent), "--store", url]) == 2
    assert "there is no table 'cats'; there are runs," in capsys.readouterr().err


def answers(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]
