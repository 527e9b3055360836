"""Asks Spark SQL, the UDF and the live evaluator the same questions and notes where they differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
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
UDF_ANSWERS = "question INT, global_seq BIGINT, matched BOOLEAN, error STRING"


class Answer(NamedTuple):
    """What the native parts of a predicate say of an entry, and whether that is to be believed."""

    condition: bool | None
    in_doubt: bool


class Agreement:
    """Who said what, summed up over any number of questions."""

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
        for number, answers in enumerate(zip(ask_sql(frame, compiled), ask_udf(frame, texts), live, strict=True)):
            self._note(texts[number], compiled[number], zip(entries, *answers, strict=True))
        frame.unpersist()

    def _note(
        self, text: str, compiled: CompiledPredicate, rows: Iterator[tuple[Entry, Answer, Verdict, Verdict]]
    ) -> None:
        self.tally["predicates"] += 1
        self.tally["native predicates"] += compiled.is_native
        for entry, in_sql, in_udf, live in rows:
            self.tally["pairs"] += 1
            self.tally[said(live)] += 1
            self.tally["answered by SQL alone"] += is_decided(compiled, in_sql)
            if in_udf != live or not is_sound(compiled, in_sql, live) or (live and not has_needles(compiled, entry)):
                self.differences.append((text, entry.payload_json, in_sql, in_udf, live))


def as_frame(spark: SparkSession, entries: Sequence[Entry]) -> DataFrame:
    """Entries as the lake has them, with what the value was before."""
    rows = [tuple(entry) for entry in entries]
    return spark.createDataFrame(rows, spark_ddl(COLUMNS)).withColumn(PREVIOUS, expr(literal("")))


def ask_sql(frame: DataFrame, questions: Sequence[CompiledPredicate]) -> list[list[Answer]]:
    """Some at a time: a query with too many is more than Java compiles, and Spark would only interpret it."""
    return [answers for some in batched(questions, AT_ONCE) for answers in _ask_some(frame, some)]


def _ask_some(frame: DataFrame, questions: Sequence[CompiledPredicate]) -> list[list[Answer]]:
    conditions = [f"{each.condition} AS c{number}" for number, each in enumerate(questions)]
    doubts = [f"{each.doubt or 'false'} AS d{number}" for number, each in enumerate(questions)]
    rows = frame.orderBy("global_seq").selectExpr(*conditions, *doubts).collect()
    return [[Answer(row[f"c{number}"], row[f"d{number}"]) for row in rows] for number in range(len(questions))]


def batched(questions: Sequence[CompiledPredicate], size: int) -> list[Sequence[CompiledPredicate]]:
    return [questions[start : start + size] for start in range(0, len(questions), size)]


def ask_udf(frame: DataFrame, texts: Sequence[str]) -> list[list[Verdict]]:
    rows = frame.mapInArrow(partial(answer_all, tuple(texts)), UDF_ANSWERS).orderBy("question", "global_seq").collect()
    answers: list[list[Verdict]] = [[] for _ in texts]
    for row in rows:
        answers[row["question"]].append(Verdict(matched=row["matched"], error=row["error"]))
    return answers


def answer_all(texts: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, text in enumerate(texts):
            said = [(verdict.matched, verdict.error) for verdict in verdicts(text, batch)]
            matched, errors = zip(*said, strict=True) if said else ((), ())
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([number] * len(said), pa.int32()),
                    batch.column("global_seq"),
                    pa.array(matched, pa.bool_()),
                    pa.array(errors, pa.string()),
                ],
                ["question", "global_seq", "matched", "error"],
            )


def said(verdict: Verdict) -> str:
    return "error" if verdict.error is not None else str(verdict.matched).lower()


def outcome(verdict: Verdict) -> bool | None:
    """True, false, or None for an error."""
    return None if verdict.error is not None else verdict.matched


def is_decided(compiled: CompiledPredicate, answer: Answer) -> bool:
    """Whether no evaluator has to be asked any more."""
    return not answer.in_doubt and (compiled.is_native or answer.condition is False)


def has_needles(compiled: CompiledPredicate, entry: Entry) -> bool:
    """Whether the payload's text is not passed over before it is parsed."""
    return all(needle in (entry.payload_json or "") for part in compiled.parts for needle in part.substrings)


def is_sound(compiled: CompiledPredicate, answer: Answer, verdict: Verdict) -> bool:
    """A native predicate says exactly what the evaluator says; one with other parts lets pass whatever may match."""
    if answer.in_doubt:
        return True
    expected = outcome(verdict)
    if compiled.is_native:
        return answer.condition is expected
    return answer.condition is True if expected else not (expected is None and answer.condition is False)
