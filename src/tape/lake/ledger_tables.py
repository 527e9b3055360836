"""The tables of the ledgers: decisions, effects and their latencies, budgets."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812 - as everybody calls them

from tape.lake.extraction import Extraction, Field, FieldType, as_declared
from tape.lake.schema import GLOBAL_SEQ, PAYLOAD_JSON, RUN_ID, TS_MS

BEGUN: Final = ("pending",)
OUTCOMES: Final = ("confirmed", "failed", "unknown", "reconciled")
SETTLED: Final = ("confirmed", "failed")
OBSERVE_ONLY: Final = "observe_only"
SPENT: Final = ("usd_spent", "usd_reserved", "tokens_spent", "tokens_reserved")

_EFFECT: Final = (
    Field("tool", FieldType.TEXT),
    Field("idempotency_key", FieldType.TEXT),
    Field("status", FieldType.TEXT),
)

INTENTS: Final = Extraction(table="effects", kind="effect", type=BEGUN, fields=_EFFECT)
RESULTS: Final = Extraction(table="effects", kind="effect", type=OUTCOMES, fields=_EFFECT)
DECISIONS: Final = Extraction(
    table="decisions",
    kind="decision",
    type="recorded",
    fields=(
        Field("decision_index", FieldType.COUNT),
        Field("model", FieldType.TEXT),
        Field("policy_version", FieldType.TEXT),
    ),
)
BUDGETS: Final = Extraction(
    table="budgets",
    kind="budget",
    type=("set", "reserved", "settled", "charged"),
    fields=tuple(Field(name, FieldType.NUMBER if name.startswith("usd") else FieldType.COUNT) for name in SPENT),
)
EXTRACTIONS: Final = (INTENTS, RESULTS, DECISIONS, BUDGETS)


def effects(journal: DataFrame) -> DataFrame:
    """Every effect: its tool, its status, and the time until its outcome was known."""
    key = [RUN_ID, "idempotency_key"]
    intents = INTENTS.rows(journal).groupBy(*key).agg(
        F.min_by("tool", GLOBAL_SEQ).alias("tool"),
        F.min_by(_optional("decision_index", "bigint"), GLOBAL_SEQ).alias("decision_index"),
        F.min_by(_optional("semantics", "string"), GLOBAL_SEQ).alias("semantics"),
        F.min_by(_optional("dispatch_mode", "string"), GLOBAL_SEQ).alias("dispatch_mode"),
        F.min(TS_MS).alias("began_ts_ms"),
        F.max(GLOBAL_SEQ).alias("intent_at"),
    )  # fmt: skip
    results = RESULTS.rows(journal).groupBy(*key).agg(
        F.max_by("status", GLOBAL_SEQ).alias("last_status"),
        F.max(F.when(F.col("status").isin(*SETTLED), F.col(TS_MS))).alias("settled_ts_ms"),
        F.max(GLOBAL_SEQ).alias("result_at"),
    )  # fmt: skip
    has_result = F.coalesce(F.col("result_at") > F.col("intent_at"), F.lit(False))
    status = F.when(has_result, F.col("last_status")).otherwise(F.lit("pending"))
    latency = F.col("settled_ts_ms") - F.col("began_ts_ms")
    rows = intents.join(results, key, "left").withColumns({"status": status, "latency_ms": latency})
    return as_declared("effects", rows)


def effect_latencies(journal: DataFrame) -> DataFrame:
    """How the effects of each tool ended and how long they took, without observe-only effects."""
    acted = effects(journal).where(F.col("semantics") != OBSERVE_ONLY).groupBy("tool")
    rows = acted.agg(
        F.count("*").alias("n_effects"),
        *(F.count_if(F.col("status") == status).alias(f"n_{status}") for status in ("confirmed", "failed", "unknown")),
        F.round(F.percentile("latency_ms", F.lit(0.5)), 3).alias("p50_ms"),
        F.round(F.percentile("latency_ms", F.lit(0.95)), 3).alias("p95_ms"),
        F.max("latency_ms").alias("max_ms"),
    )
    return as_declared("effect_latencies", rows)


def decisions(journal: DataFrame) -> DataFrame:
    """Every decision and its effects."""
    place = [RUN_ID, "decision_index"]
    acted = effects(journal).where(F.col("semantics") != OBSERVE_ONLY).groupBy(*place)
    had = acted.agg(
        F.count("*").alias("effects"),
        F.count_if(F.col("status") == "confirmed").alias("confirmed"),
        F.count_if(F.col("status") == "failed").alias("failed"),
        F.array_join(F.array_sort(F.collect_set("tool")), ", ").alias("used"),
    )
    counts = {f"n_{name}": F.coalesce(F.col(name), F.lit(0)) for name in ("effects", "confirmed", "failed")}
    rows = DECISIONS.rows(journal).join(had, place, "left")
    return as_declared("decisions", rows.withColumns({**counts, "tools": F.coalesce(F.col("used"), F.lit(""))}))


def budgets(journal: DataFrame) -> DataFrame:
    """The caps, spending and reservations of every run, from its last budget entry."""
    caps = {"usd_cap": _optional("usd_cap", "double"), "token_cap": _optional("token_cap", "bigint")}
    changes = BUDGETS.rows(journal).withColumns(caps)
    last = [F.max_by(name, GLOBAL_SEQ).alias(name) for name in (*caps, *SPENT)]
    rows = changes.groupBy(RUN_ID).agg(*last, F.count("*").alias("n_changes"))
    return as_declared("budgets", rows)


def _optional(name: str, kind: str) -> Column:
    """A field that an entry may leave out or set to null."""
    return F.try_variant_get(F.try_parse_json(PAYLOAD_JSON), f"$.{name}", kind)
