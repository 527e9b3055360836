"""The columns of the journal and of the derived tables, with Spark's types."""

from collections.abc import Mapping, Sequence
from typing import Final

from tape.core.event import Columns
from tape.store.ranges import BYTES, INTEGERS, arrow_schema

__all__ = ["COLUMNS", "QUARANTINE", "TABLES", "arrow_schema", "source_ddl", "spark_ddl", "spark_type"]

COLUMNS: Final = Columns._fields
OPTIONAL: Final = frozenset({"cause", "payload_json", "payload_bytes"})

GLOBAL_SEQ: Final = "global_seq"
SEQ: Final = "seq"
TS_MS: Final = "ts_ms"
RUN_ID: Final = "run_id"
KIND: Final = "kind"
TYPE: Final = "type"
SUBJECT: Final = "subject"
PAYLOAD_JSON: Final = "payload_json"

DEFINITION: Final = 2  # raise it when a table gives other rows for the same journal
QUARANTINE: Final = "global_seq BIGINT, table STRING, reason STRING, payload_json STRING"
TABLES: Final[Mapping[str, str]] = {
    "runs": "run_id STRING, status STRING, parent_run_id STRING, at_seq BIGINT, n_events BIGINT, first_ts_ms BIGINT, "
    "last_ts_ms BIGINT, duration_ms BIGINT, first_global_seq BIGINT, last_global_seq BIGINT",
    "types_per_minute": "minute_ms BIGINT, kind STRING, type STRING, n_events BIGINT",
    "subjects_per_minute": "minute_ms BIGINT, subject STRING, n_events BIGINT",
    "model_usage": "run_id STRING, model STRING, n_calls BIGINT, prompt_tokens BIGINT, tokens BIGINT, cost_usd DOUBLE",
    "tool_usage": "run_id STRING, tool STRING, n_asked BIGINT, n_ok BIGINT, n_failed BIGINT",
    "metrics": "run_id STRING, name STRING, agent STRING, turn_num BIGINT, value DOUBLE",
    "forks": "run_id STRING, parent_run_id STRING, at_seq BIGINT, parted_global_seq BIGINT, parted_ts_ms BIGINT, "
    "forked_ts_ms BIGINT, reason STRING, mutation_json STRING, agent STRING, turn_num BIGINT, parent_value DOUBLE, "
    "value DOUBLE, difference DOUBLE",
    "effects": "run_id STRING, idempotency_key STRING, tool STRING, status STRING, decision_index BIGINT, "
    "semantics STRING, dispatch_mode STRING, began_ts_ms BIGINT, settled_ts_ms BIGINT, latency_ms BIGINT",
    "effect_latencies": "tool STRING, n_effects BIGINT, n_confirmed BIGINT, n_failed BIGINT, n_unknown BIGINT, "
    "p50_ms DOUBLE, p95_ms DOUBLE, max_ms BIGINT",
    "decisions": "run_id STRING, decision_index BIGINT, model STRING, policy_version STRING, ts_ms BIGINT, "
    "n_effects BIGINT, n_confirmed BIGINT, n_failed BIGINT, tools STRING",
    "budgets": "run_id STRING, usd_cap DOUBLE, token_cap BIGINT, usd_spent DOUBLE, usd_reserved DOUBLE, "
    "tokens_spent BIGINT, tokens_reserved BIGINT, n_changes BIGINT",
    "reactions": "reaction_id STRING, subject_pattern STRING, predicate_cel STRING, handler_kind BIGINT, "
    "status STRING, n_definitions BIGINT, n_pauses BIGINT, n_dead BIGINT, n_replayed BIGINT, first_ts_ms BIGINT, "
    "last_ts_ms BIGINT",
}


def spark_ddl(columns: Sequence[str] = COLUMNS) -> str:
    """The columns as `DataFrameReader.schema` takes them."""
    return ", ".join(f"{column} {spark_type(column)}" for column in columns)


def source_ddl() -> str:
    """The journal's columns, most of them NOT NULL, so that Spark need not check each value."""
    return ", ".join(f"{column} {spark_type(column)}{'' if column in OPTIONAL else ' NOT NULL'}" for column in COLUMNS)


def spark_type(column: str) -> str:
    if column in INTEGERS:
        return "BIGINT"
    return "BINARY" if column in BYTES else "STRING"
