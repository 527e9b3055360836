"""Filters a frame of entries by a pattern and a predicate on Spark, exactly as the live matcher would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from tape.core import codec
from tape.core.event import VALUE
from tape.core.lifecycle import PREFIXES, SOURCE_SUBJECT, names_lifecycle
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.core.subject import ONE, Pattern
from tape.lake.sql.predicate import compile_predicate
from tape.lake.sql.text import call, case, chain, infix, literal, negate

PREVIOUS: Final = "prev_value_json"
IN_DOUBT: Final = "in_doubt"
FAILURES: Final = "global_seq BIGINT, error STRING"


class EvaluatedEntry(NamedTuple):
    """The columns of an entry that the CEL evaluator reads."""

    global_seq: int
    run_id: str
    seq: int
    kind: str
    type: str
    subject: str
    ts_ms: int
    schema_version: int
    trace_id: str
    payload_json: str | None
    prev_value_json: str

    @property
    def payload(self) -> object:
        return None if self.payload_json is None else codec.parse(self.payload_json)


def history(entries: DataFrame, pattern: str, where: str = "") -> DataFrame:
    """The entries that the live matcher would have matched, with the frame's columns.

    `prev_value_json` is the column of that name, or is read from the payload if there is none.
    """
    compiled = compile_predicate(Predicate(where))
    passed = entries_under_pattern(entries, pattern).filter(compiled.may_match)
    if not compiled.is_native:
        return filter_by_evaluator(passed, where).select(*entries.columns)
    if compiled.doubt is not None:
        return filter_by_evaluator(passed, where, compiled.doubt).select(*entries.columns)
    return passed.select(*entries.columns)


def left_to_evaluator(entries: DataFrame, pattern: str, where: str = "") -> DataFrame | None:
    """The entries that only the CEL evaluator can judge; None if Spark can judge all of them."""
    compiled = compile_predicate(Predicate(where))
    passed = entries_under_pattern(entries, pattern).filter(compiled.may_match)
    if not compiled.is_native:
        return passed
    return None if compiled.doubt is None else passed.filter(compiled.doubt)


def errors(entries: DataFrame, pattern: str, where: str = "") -> DataFrame:
    """The position and error text of every entry under the pattern on which the predicate raises an error."""
    compiled = compile_predicate(Predicate(where))
    suspects = entries_under_pattern(entries, pattern).filter(compiled.may_fail).select(*EvaluatedEntry._fields)
    return suspects.mapInArrow(partial(_failing, where), FAILURES)


def entries_under_pattern(entries: DataFrame, pattern: str) -> DataFrame:
    """The entries that a reaction with this pattern reads, with `prev_value_json`."""
    if PREVIOUS not in entries.columns:
        entries = entries.withColumn(PREVIOUS, expr(previous_value()))
    parsed = Pattern(pattern)
    return entries.filter(subject_condition(parsed)).filter(lifecycle_condition(parsed))


def previous_value() -> str:
    """`Entry.prev_value_json` in Spark SQL."""
    before = call("get_json_object", "payload_json", literal("$.prev_value_json"))
    return call("coalesce", case((infix("kind", "=", literal(VALUE)), before)), literal(""))


def filter_by_evaluator(entries: DataFrame, where: str, doubt: str = literal(True)) -> DataFrame:
    """Keeps the entries in doubt that the CEL evaluator matches, and all entries that are not in doubt."""
    marked = entries.withColumn(IN_DOUBT, expr(doubt))
    return marked.mapInArrow(partial(_matching, where), entries.schema)


def errors_by_cause(failures: DataFrame) -> DataFrame:
    """Groups errors by text: the number of entries, and the first and the last of them."""
    numbers = "count(*) AS entries", "min(global_seq) AS first_global_seq", "max(global_seq) AS last_global_seq"
    return failures.groupBy("error").agg(*map(expr, numbers))


def subject_condition(pattern: Pattern) -> str:
    """The pattern in Spark SQL: an equality or a prefix, which Spark can push down, and a regex for the segments."""
    if pattern.literal is not None:
        return infix("subject", "=", literal(pattern.literal))
    bounds = pattern.prefix_range()
    prefix = [call("startswith", "subject", literal(bounds[0]))] if bounds else []
    return chain("AND", *prefix, call("rlike", "subject", literal(_segments(pattern))))


def lifecycle_condition(pattern: Pattern) -> str:
    """`lifecycle.may_react` in Spark SQL."""
    if not names_lifecycle(pattern):
        return negate(_is_lifecycle("subject"))
    source = call("get_json_object", "payload_json", literal(f"$.{SOURCE_SUBJECT}"))
    return negate(chain("AND", _is_lifecycle("subject"), _is_lifecycle(call("coalesce", source, literal("")))))


def _is_lifecycle(subject: str) -> str:
    return chain("OR", *(call("startswith", subject, literal(prefix)) for prefix in PREFIXES))


def _segments(pattern: Pattern) -> str:
    segments = ("[^/]*" if segment == ONE else re.sub(r"([^A-Za-z0-9])", r"\\\1", segment) for segment in pattern.head)
    return r"\A" + "".join(f"/{segment}" for segment in segments) + (r"(?:/|\z)" if pattern.is_open else r"\z")


def _matching(where: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        *columns, _ = batch.schema.names
        doubts = batch.column(IN_DOUBT)
        judged = verdicts(where, batch.filter(doubts))
        keep = [next(judged).matched if in_doubt else True for in_doubt in doubts.to_pylist()]
        yield batch.select(columns).filter(pa.array(keep, pa.bool_()))


def _failing(where: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        texts = [verdict.error for verdict in verdicts(where, batch)]
        failed = pa.RecordBatch.from_arrays(
            [batch.column("global_seq"), pa.array(texts, pa.string())], ["global_seq", "error"]
        )
        yield failed.filter(failed.column("error").is_valid())


def verdicts(where: str, batch: pa.RecordBatch) -> Iterator[Verdict]:
    """The evaluator's verdict on each row."""
    predicate = _predicate(where)
    rows = zip(*(batch.column(name).to_pylist() for name in EvaluatedEntry._fields), strict=True)
    return (predicate.evaluate(bind(entry)) for entry in map(EvaluatedEntry._make, rows))


@lru_cache(maxsize=16)
def _predicate(where: str) -> Predicate:
    return Predicate(where)
