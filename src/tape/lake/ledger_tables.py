"""The tables of the ledgers: what runs decided, what they did outside and how long it took, and what they spent."""

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
READINGS: Final = (INTENTS, RESULTS, DECISIONS, BUDGETS)


def effects(journal: DataFrame) -> DataFrame:
    """Every effect: what it was for, how it stands, and how long it took until its outcome was known."""
    key = [RUN_ID, "idempotency_key"]
    intents = INTENTS.taken(journal).groupBy(*key).agg(
        F.min_by("tool", GLOBAL_SEQ).alias("tool"),
        F.min_by(_told("decision_index", "bigint"), GLOBAL_SEQ).alias("decision_index"),
        F.min_by(_told("semantics", "string"), GLOBAL_SEQ).alias("semantics"),
        F.min_by(_told("dispatch_mode", "string"), GLOBAL_SEQ).alias("dispatch_mode"),
        F.min(TS_MS).alias("began_ts_ms"),
        F.max(GLOBAL_SEQ).alias("asked_at"),
    )  # fmt: skip
    results = RESULTS.taken(journal).groupBy(*key).agg(
        F.max_by("status", GLOBAL_SEQ).alias("last_status"),
        F.max(F.when(F.col("status").isin(*SETTLED), F.col(TS_MS))).alias("settled_ts_ms"),
        F.max(GLOBAL_SEQ).alias("answered_at"),
    )  # fmt: skip
    is_answered = F.coalesce(F.col("answered_at") > F.col("asked_at"), F.lit(False))
    status = F.when(is_answered, F.col("last_status")).otherwise(F.lit("pending"))
    latency = F.col("settled_ts_ms") - F.col("began_ts_ms")
    rows = intents.join(results, key, "left").withColumns({"status": status, "latency_ms": latency})
    return as_declared("effects", rows)


def effect_latencies(journal: DataFrame) -> DataFrame:
    """How the effects of each tool ended, and how long they took; what only looks at the world is none."""
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
    """Every decision, and which effects it had."""
    place = [RUN_ID, "decision_index"]
    acted = effects(journal).where(F.col("semantics") != OBSERVE_ONLY).groupBy(*place)
    had = acted.agg(
        F.count("*").alias("effects"),
        F.count_if(F.col("status") == "confirmed").alias("confirmed"),
        F.count_if(F.col("status") == "failed").alias("failed"),
        F.array_join(F.array_sort(F.collect_set("tool")), ", ").alias("used"),
    )
    counts = {f"n_{name}": F.coalesce(F.col(name), F.lit(0)) for name in ("effects", "confirmed", "failed")}
    rows = DECISIONS.taken(journal).join(had, place, "left")
    return as_declared("decisions", rows.withColumns({**counts, "tools": F.coalesce(F.col("used"), F.lit(""))}))


def budgets(journal: DataFrame) -> DataFrame:
    """What every run may spend, has spent and has set aside, as of its last word on that."""
    caps = {"usd_cap": _told("usd_cap", "double"), "token_cap": _told("token_cap", "bigint")}
    told = BUDGETS.taken(journal).withColumns(caps)
    last = [F.max_by(name, GLOBAL_SEQ).alias(name) for name in (*caps, *SPENT)]
    rows = told.groupBy(RUN_ID).agg(*last, F.count("*").alias("n_changes"))
    return as_declared("budgets", rows)


def _told(name: str, kind: str) -> Column:
    """A field that an entry may leave out, or say to be nothing."""
    return F.try_variant_get(F.try_parse_json(PAYLOAD_JSON), f"$.{name}", kind)
