"""Evaluates predicates in Spark SQL, in a UDF and live, and records where the results differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tape.core.event import Entry
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.lake.schema import COLUMNS, spark_ddl
from tape.lake.search.history import PREVIOUS, verdicts
from tape.lake.sql.predicate import CompiledPredicate, compile_predicate
from tape.lake.sql.text import literal

AT_ONCE = 6
UDF_RESULTS = "predicate INT, global_seq BIGINT, matched BOOLEAN, error STRING"


class SqlResult(NamedTuple):
    """The result of a predicate's native parts for an entry, and whether it is in doubt."""

    condition: bool | None
    in_doubt: bool


class Agreement:
    """Counts and differences over any number of predicates."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.tally: Counter[str] = Counter()
        self.verdicts: dict[str, list[Verdict]] = {}
        self.differences: list[tuple[object, ...]] = []

    def compare(self, texts: Sequence[str], entries: Sequence[Entry]) -> None:
        frame = as_frame(self._spark, entries).cache()
        predicates, bound = [Predicate(text) for text in texts], [bind(entry) for entry in entries]
        live = [[predicate.evaluate(activation) for activation in bound] for predicate in predicates]
        self.verdicts.update(zip(texts, live, strict=True))
        compiled = [compile_predicate(predicate) for predicate in predicates]
        for number, results in enumerate(
            zip(evaluate_sql(frame, compiled), evaluate_udf(frame, texts), live, strict=True)
        ):
            self._compare(texts[number], compiled[number], zip(entries, *results, strict=True))
        frame.unpersist()

    def _compare(
        self, text: str, compiled: CompiledPredicate, rows: Iterator[tuple[Entry, SqlResult, Verdict, Verdict]]
    ) -> None:
        self.tally["predicates"] += 1
        self.tally["native predicates"] += compiled.is_native
        for entry, in_sql, in_udf, live in rows:
            self.tally["pairs"] += 1
            self.tally[outcome_name(live)] += 1
            self.tally["decided by SQL alone"] += is_decided(compiled, in_sql)
            if in_udf != live or not is_sound(compiled, in_sql, live) or (live and not has_substrings(compiled, entry)):
                self.differences.append((text, entry.payload_json, in_sql, in_udf, live))


def as_frame(spark: SparkSession, entries: Sequence[Entry]) -> DataFrame:
    """Entries as the lake has them, with what the value was before."""
    rows = [tuple(entry) for entry in entries]
    return spark.createDataFrame(rows, spark_ddl(COLUMNS)).withColumn(PREVIOUS, expr(literal("")))


def evaluate_sql(frame: DataFrame, compiled_predicates: Sequence[CompiledPredicate]) -> list[list[SqlResult]]:
    """Evaluates a few at a time: Java does not compile a query with too many, and Spark would interpret it."""
    return [results for some in batched(compiled_predicates, AT_ONCE) for results in _evaluate_some(frame, some)]


def _evaluate_some(frame: DataFrame, compiled_predicates: Sequence[CompiledPredicate]) -> list[list[SqlResult]]:
    conditions = [f"{each.condition} AS c{number}" for number, each in enumerate(compiled_predicates)]
    doubts = [f"{each.doubt or 'false'} AS d{number}" for number, each in enumerate(compiled_predicates)]
    rows = sorted(frame.selectExpr("global_seq", *conditions, *doubts).collect(), key=itemgetter("global_seq"))
    return [
        [SqlResult(row[f"c{number}"], row[f"d{number}"]) for row in rows] for number in range(len(compiled_predicates))
    ]


def batched(compiled_predicates: Sequence[CompiledPredicate], size: int) -> list[Sequence[CompiledPredicate]]:
    return [compiled_predicates[start : start + size] for start in range(0, len(compiled_predicates), size)]


def evaluate_udf(frame: DataFrame, texts: Sequence[str]) -> list[list[Verdict]]:
    rows = frame.mapInArrow(partial(evaluate_all, tuple(texts)), UDF_RESULTS).collect()
    results: list[list[Verdict]] = [[] for _ in texts]
    for row in sorted(rows, key=itemgetter("global_seq")):
        results[row["predicate"]].append(Verdict(matched=row["matched"], error=row["error"]))
    return results


def evaluate_all(texts: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, text in enumerate(texts):
            outcome_name = [(verdict.matched, verdict.error) for verdict in verdicts(text, batch)]
            matched, errors = zip(*outcome_name, strict=True) if outcome_name else ((), ())
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([number] * len(outcome_name), pa.int32()),
                    batch.column("global_seq"),
                    pa.array(matched, pa.bool_()),
                    pa.array(errors, pa.string()),
                ],
                ["predicate", "global_seq", "matched", "error"],
            )


def outcome_name(verdict: Verdict) -> str:
    return "error" if verdict.error is not None else str(verdict.matched).lower()


def outcome(verdict: Verdict) -> bool | None:
    """True, false, or None for an error."""
    return None if verdict.error is not None else verdict.matched


def is_decided(compiled: CompiledPredicate, result: SqlResult) -> bool:
    """Whether the evaluator need not decide."""
    return not result.in_doubt and (compiled.is_native or result.condition is False)


def has_substrings(compiled: CompiledPredicate, entry: Entry) -> bool:
    """Whether the payload has the substrings, so that it is parsed."""
    return all(substring in (entry.payload_json or "") for part in compiled.parts for substring in part.substrings)


def is_sound(compiled: CompiledPredicate, result: SqlResult, verdict: Verdict) -> bool:
    """A native predicate gives the evaluator's result; one with other parts keeps every entry that may match."""
    if result.in_doubt:
        return True
    expected = outcome(verdict)
    if compiled.is_native:
        return result.condition is expected
    return result.condition is True if expected else not (expected is None and result.condition is False)
