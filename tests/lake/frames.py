"""Small frames for row-level tests, and a comparison that prints what is different."""

from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff

from pyspark.sql import DataFrame, SparkSession

from tape.core.event import Event
from tape.core.ids import Epoch
from tape.lake.schema import spark_ddl

SECOND_MS = 1_000


def journal_of(spark: SparkSession, *events: Event, ms: int = SECOND_MS) -> DataFrame:
    """The events as an empty journal would have placed them, so many milliseconds apart, from 0 on."""
    seqs: Counter[str] = Counter()
    rows = []
    for place, event in enumerate(events, 1):
        forked = event.payload["at_seq"] if event.type == "fork" and isinstance(event.payload, dict) else 0
        seqs[event.run_id] += 1 + (forked if isinstance(forked, int) else 0)
        rows.append(tuple(event.at(place, seqs[event.run_id], (place - 1) * ms, 0, Epoch(1))))
    return spark.createDataFrame(rows, spark_ddl())


def assert_rows(frame: DataFrame, *expected: Sequence[object], columns: str = "") -> None:
    """Fails with the difference, line by line, unless the frame has exactly these rows, in any order."""
    found = frame.select(*columns.split()) if columns else frame
    found_lines = sorted(map(_line, found.collect()))
    expected_lines = sorted(map(_line, expected))
    if found_lines != expected_lines:
        heading = _line(found.columns)
        diff = unified_diff(expected_lines, found_lines, "expected", "found", lineterm="", n=1_000)
        raise AssertionError("\n".join(["the rows differ", f"   {heading}", *diff]))


def _line(row: Sequence[object]) -> str:
    return " | ".join("∅" if value is None else str(value) for value in row)
