"""The table of reactions: definition, status, and how many tasks died and were replayed."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, functions as F  # noqa: N812 - as everybody calls them

from tape.core.registration import REACTION, Verb
from tape.core.task import TASK
from tape.lake.extraction import Extraction, Field, FieldType, as_declared
from tape.lake.schema import GLOBAL_SEQ, PAYLOAD_JSON, TS_MS

MATCHING: Final = "matching"
NAME: Final = Field("reaction_id", FieldType.TEXT)
DEFINED: Final = Extraction(
    table="reactions", kind=REACTION, type=(Verb.REGISTERED.value, Verb.CHANGED.value), fields=(NAME,)
)
STOPPED: Final = Extraction(
    table="reactions", kind=REACTION, type=(Verb.PAUSED.value, Verb.REMOVED.value), fields=(NAME,)
)
DEAD: Final = Extraction(table="reactions", kind=TASK, type="dead", fields=(NAME,))
REPLAYED: Final = Extraction(table="reactions", kind=TASK, type="replayed", fields=(NAME,))
EXTRACTIONS: Final = (DEFINED, STOPPED, DEAD, REPLAYED)


def reactions(journal: DataFrame) -> DataFrame:
    """Every reaction with its newest definition, its status, and the counts of dead and replayed tasks."""
    changes = _defined(journal).unionByName(_stopped(journal)).unionByName(_task_ends(journal))
    is_definition = F.col("subject_pattern").isNotNull()
    rows = changes.groupBy("reaction_id").agg(
        F.max_by("subject_pattern", F.when(is_definition, F.col(GLOBAL_SEQ))).alias("subject_pattern"),
        F.max_by("predicate_cel", F.when(is_definition, F.col(GLOBAL_SEQ))).alias("predicate_cel"),
        F.max_by("handler_kind", F.when(is_definition, F.col(GLOBAL_SEQ))).alias("handler_kind"),
        F.max_by("status", F.when(F.col("status").isNotNull(), F.col(GLOBAL_SEQ))).alias("status"),
        F.count_if(is_definition).alias("n_definitions"),
        F.count_if(F.col("status") == Verb.PAUSED.value).alias("n_pauses"),
        F.sum("dead").alias("n_dead"),
        F.sum("replayed").alias("n_replayed"),
        F.min(TS_MS).alias("first_ts_ms"),
        F.max(TS_MS).alias("last_ts_ms"),
    )
    return as_declared("reactions", rows)


def _defined(journal: DataFrame) -> DataFrame:
    """Definitions; a reaction matches after one, unless the entry keeps it paused."""
    definitions = DEFINED.rows(journal)
    paused = F.coalesce(F.get_json_object(PAYLOAD_JSON, "$.paused"), F.lit(""))
    status = F.when(paused == "", F.lit(MATCHING)).otherwise(F.lit(None).cast("string"))
    return definitions.select(
        GLOBAL_SEQ,
        TS_MS,
        "reaction_id",
        F.get_json_object(PAYLOAD_JSON, "$.reaction.subject_pattern").alias("subject_pattern"),
        F.get_json_object(PAYLOAD_JSON, "$.reaction.predicate_cel").alias("predicate_cel"),
        F.get_json_object(PAYLOAD_JSON, "$.reaction.handler_kind").cast("bigint").alias("handler_kind"),
        status.alias("status"),
        F.lit(0).alias("dead"),
        F.lit(0).alias("replayed"),
    )


def _stopped(journal: DataFrame) -> DataFrame:
    """Pauses and removals; a removal ends all pending tasks."""
    is_pause = F.get_json_object(PAYLOAD_JSON, "$.reason").isNotNull()
    ended = F.coalesce(F.get_json_object(PAYLOAD_JSON, "$.ended_tasks").try_cast("bigint"), F.lit(0))
    status = F.when(is_pause, F.lit(Verb.PAUSED.value)).otherwise(F.lit(Verb.REMOVED.value))
    return _without_definition(STOPPED.rows(journal).withColumn("status", status).withColumn("dead", ended))


def _task_ends(journal: DataFrame) -> DataFrame:
    dead = DEAD.rows(journal).withColumn("dead", F.lit(1))
    replayed = REPLAYED.rows(journal).withColumn("replayed", F.lit(1))
    return _without_definition(dead).unionByName(_without_definition(replayed))


def _without_definition(rows: DataFrame) -> DataFrame:
    missing = {"subject_pattern": "string", "predicate_cel": "string", "handler_kind": "bigint", "status": "string"}
    nothing = {name: F.lit(None).cast(kind) for name, kind in missing.items()}
    none = {"dead": F.lit(0), "replayed": F.lit(0)}
    filled = rows.withColumns({name: value for name, value in (nothing | none).items() if name not in rows.columns})
    return filled.select(GLOBAL_SEQ, TS_MS, "reaction_id", *missing, *none)
