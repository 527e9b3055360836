"""The tables of the lake: each is a pure function of the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812 - as everybody calls them

from tape.core.fork import FORK, RUN
from tape.core.ids import SYSTEM_PREFIX
from tape.lake import extraction, ledger_tables, work_tables
from tape.lake.extraction import Extraction, Field, FieldType, as_declared
from tape.lake.schema import GLOBAL_SEQ, KIND, PAYLOAD_JSON, RUN_ID, SEQ, SUBJECT, TS_MS, TYPE

MINUTE_MS: Final = 60_000
SEGMENTS: Final = 2
OPEN: Final = "open"
SYSTEM: Final = "system"
MUTATION: Final = "mutation"
PROSPERITY: Final = "prosperity"
MONEY: Final = "decimal(28, 12)"  # sums do not depend on the order of addition

Table: TypeAlias = Callable[[DataFrame], DataFrame]

FORKS: Final = Extraction(
    table="forks",
    kind=RUN,
    type=FORK,
    fields=(
        Field("parent_run_id", FieldType.TEXT),
        Field("at_seq", FieldType.COUNT),
        Field("reason", FieldType.TEXT, is_required=False),
    ),
)
PROMPTS: Final = Extraction(
    table="model_usage", type="llm_prompt", fields=(Field("model", FieldType.TEXT), Field("tokens", FieldType.COUNT))
)
RESPONSES: Final = Extraction(
    table="model_usage", type="llm_response", fields=(*PROMPTS.fields, Field("cost_usd", FieldType.NUMBER))
)
ACTIONS: Final = Extraction(table="tool_usage", type="action", fields=(Field("tool", FieldType.TEXT),))
RESULTS: Final = Extraction(
    table="tool_usage", type="action_result", fields=(*ACTIONS.fields, Field("ok", FieldType.FLAG))
)
METRICS: Final = Extraction(
    table="metrics",
    type="metric",
    fields=(
        Field("name", FieldType.TEXT),
        Field("agent", FieldType.TEXT),
        Field("turn_num", FieldType.COUNT),
        Field("value", FieldType.NUMBER),
    ),
)
EXTRACTIONS: Final = (
    FORKS,
    PROMPTS,
    RESPONSES,
    ACTIONS,
    RESULTS,
    METRICS,
    *ledger_tables.EXTRACTIONS,
    *work_tables.EXTRACTIONS,
)


def runs(journal: DataFrame) -> DataFrame:
    """Every run by its own entries; a run is open until one of them changes its status."""
    changed = F.when((F.col(KIND) == RUN) & (F.col(TYPE) != FORK), F.col(GLOBAL_SEQ))
    own = journal.groupBy(RUN_ID).agg(
        F.coalesce(F.max_by(TYPE, changed), F.lit(OPEN)).alias("last_status"),
        F.count("*").alias("n_events"),
        F.min(TS_MS).alias("first_ts_ms"),
        F.max(TS_MS).alias("last_ts_ms"),
        F.min(GLOBAL_SEQ).alias("first_global_seq"),
        F.max(GLOBAL_SEQ).alias("last_global_seq"),
    )
    parents = FORKS.rows(journal).select(RUN_ID, "parent_run_id", "at_seq")
    status = F.when(F.col(RUN_ID).startswith(SYSTEM_PREFIX), F.lit(SYSTEM)).otherwise(F.col("last_status"))
    duration = F.col("last_ts_ms") - F.col("first_ts_ms")
    rows = own.join(parents, RUN_ID, "left").withColumns({"status": status, "duration_ms": duration})
    return as_declared("runs", rows)


def types_per_minute(journal: DataFrame) -> DataFrame:
    """How many entries of each type were appended in each minute."""
    rows = journal.groupBy(_minute().alias("minute_ms"), KIND, TYPE).agg(F.count("*").alias("n_events"))
    return as_declared("types_per_minute", rows)


def subjects_per_minute(journal: DataFrame) -> DataFrame:
    """How many entries were appended in each minute by the first two segments of their subject."""
    about = F.substring_index(SUBJECT, "/", SEGMENTS + 1)  # a subject begins with a slash
    rows = journal.groupBy(_minute().alias("minute_ms"), about.alias(SUBJECT)).agg(F.count("*").alias("n_events"))
    return as_declared("subjects_per_minute", rows)


def model_usage(journal: DataFrame) -> DataFrame:
    """The tokens of prompts and responses, and the cost, of each model in each run."""
    zero, one = F.lit(0), F.lit(1)
    tokens = F.col("tokens")
    prompts = PROMPTS.rows(journal).select(
        RUN_ID, "model", zero.alias("calls"), tokens.alias("prompt"), zero.alias("response"), zero.alias("cost")
    )
    responses = RESPONSES.rows(journal).select(
        RUN_ID, "model", one.alias("calls"), zero.alias("prompt"), tokens.alias("response"), _money().alias("cost")
    )
    rows = prompts.unionByName(responses).groupBy(RUN_ID, "model")
    summed = rows.agg(
        F.sum("calls").alias("n_calls"),
        F.sum("prompt").alias("prompt_tokens"),
        F.sum("response").alias("tokens"),
        F.sum("cost").cast("double").alias("cost_usd"),
    )
    return as_declared("model_usage", summed)


def tool_usage(journal: DataFrame) -> DataFrame:
    """How often each tool was called in each run, and how often it succeeded and failed."""
    calls = ACTIONS.rows(journal).select(RUN_ID, "tool", F.lit(None).cast("boolean").alias("ok"))
    rows = calls.unionByName(RESULTS.rows(journal).select(RUN_ID, "tool", "ok")).groupBy(RUN_ID, "tool")
    counted = rows.agg(
        F.count_if(F.col("ok").isNull()).alias("n_asked"),
        F.count_if(F.col("ok")).alias("n_ok"),
        F.count_if(~F.col("ok")).alias("n_failed"),
    )
    return as_declared("tool_usage", counted)


def metrics(journal: DataFrame) -> DataFrame:
    """The metrics of every agent of a run after each turn; the later entry wins."""
    rows = METRICS.rows(journal).groupBy(RUN_ID, "name", "agent", "turn_num")
    return as_declared("metrics", rows.agg(F.max_by("value", GLOBAL_SEQ).alias("value")))


def forks(journal: DataFrame) -> DataFrame:
    """Every fork and its parent: where they part, the mutation, and how each agent ended in both.

    An outcome is the agent's prosperity after the last turn that both runs have; without one the row has no agent.
    """
    rows = FORKS.rows(journal).withColumnRenamed(TS_MS, "forked_ts_ms").drop(SEQ, GLOBAL_SEQ, PAYLOAD_JSON)
    rows = rows.join(_partings(journal, rows), ["parent_run_id", "at_seq"], "left")
    rows = rows.join(_mutations(journal), [RUN_ID, "at_seq"], "left")
    rows = rows.join(_outcomes(metrics(journal), rows), RUN_ID, "left")
    return as_declared("forks", rows.withColumn("difference", F.col("value") - F.col("parent_value")))


def quarantine(journal: DataFrame) -> DataFrame:
    """Every entry that a table cannot read, with the table and the reason."""
    return extraction.quarantine(journal, EXTRACTIONS)


DEFINITIONS: Final[Mapping[str, Table]] = {
    "runs": runs,
    "types_per_minute": types_per_minute,
    "subjects_per_minute": subjects_per_minute,
    "model_usage": model_usage,
    "tool_usage": tool_usage,
    "metrics": metrics,
    "forks": forks,
    "effects": ledger_tables.effects,
    "effect_latencies": ledger_tables.effect_latencies,
    "decisions": ledger_tables.decisions,
    "budgets": ledger_tables.budgets,
    "reactions": work_tables.reactions,
}


def _partings(journal: DataFrame, children: DataFrame) -> DataFrame:
    """The parents' own entries after which forks part; an inherited entry belongs to another run."""
    # Without the broadcast Spark shuffles the whole journal.
    left = F.broadcast(children.select("parent_run_id", "at_seq").distinct())
    entries = journal.select(
        F.col(RUN_ID).alias("parent_run_id"),
        F.col(SEQ).alias("at_seq"),
        F.col(GLOBAL_SEQ).alias("parted_global_seq"),
        F.col(TS_MS).alias("parted_ts_ms"),
    )
    return entries.join(left, ["parent_run_id", "at_seq"])


def _mutations(journal: DataFrame) -> DataFrame:
    """The mutation of a fork: its second own entry."""
    changed = journal.where((F.col(TYPE) == MUTATION) & (F.col(KIND) != RUN))
    return changed.select(RUN_ID, (F.col(SEQ) - 2).alias("at_seq"), F.col(PAYLOAD_JSON).alias("mutation_json"))


def _outcomes(measured: DataFrame, children: DataFrame) -> DataFrame:
    own = measured.where(F.col("name") == PROSPERITY).drop("name")
    theirs = own.withColumnsRenamed({RUN_ID: "parent_run_id", "value": "parent_value"})
    both = (
        children.select(RUN_ID, "parent_run_id").join(own, RUN_ID).join(theirs, ["parent_run_id", "agent", "turn_num"])
    )
    return both.groupBy(RUN_ID, "agent").agg(
        F.max_by("parent_value", "turn_num").alias("parent_value"),
        F.max_by("value", "turn_num").alias("value"),
        F.max("turn_num").alias("turn_num"),
    )


def _minute() -> Column:
    return F.col(TS_MS) - F.pmod(F.col(TS_MS), F.lit(MINUTE_MS))


def _money() -> Column:
    return F.col("cost_usd").cast(MONEY)
