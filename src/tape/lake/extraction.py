"""What a table takes from payloads, and why it does not take some of them: nothing is coerced, nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812 - as everybody calls them

from tape.core.event import EVENT
from tape.lake.schema import GLOBAL_SEQ, KIND, PAYLOAD_JSON, RUN_ID, SEQ, TABLES, TS_MS, TYPE
from tape.lake.sql.types import SHAPE

MOST_COUNTED: Final = 10**12  # so that millions of them can be added up
MOST_MEASURED: Final = 1e15
KEPT: Final = (GLOBAL_SEQ, RUN_ID, SEQ, TS_MS, PAYLOAD_JSON)
PAYLOAD: Final = "payload"
REASON: Final = "reason_refused"
REFUSAL: Final = "refusal"
NOT_JSON: Final = "the payload is not JSON that Spark can read"


class FieldType(Enum):
    """What a field may be: the type it is read as, how the types of such values begin, and the same in words."""

    TEXT = ("string", ("STR",), "text")
    FLAG = ("boolean", ("BOO",), "true or false")
    COUNT = ("bigint", ("BIG",), f"a whole number from 0 to {MOST_COUNTED}")
    NUMBER = ("double", ("BIG", "DEC", "DOU", "FLO"), f"a number up to {MOST_MEASURED:.0f}")

    def __init__(self, kind: str, shapes: tuple[str, ...], words: str) -> None:
        self.kind = kind
        self.shapes = shapes
        self.words = words

    def is_bounded(self, value: Column) -> Column:
        match self:
            case FieldType.COUNT:
                return value.between(0, MOST_COUNTED)
            case FieldType.NUMBER:
                return value.between(-MOST_MEASURED, MOST_MEASURED)
            case FieldType.TEXT | FieldType.FLAG:
                return F.lit(True)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a payload; one that is not needed may be missing, and may not be anything else."""

    name: str
    what: FieldType
    is_needed: bool = True

    @property
    def value(self) -> Column:
        return F.try_variant_get(F.col(PAYLOAD), f"$.{self.name}", self.what.kind)

    @property
    def reason(self) -> Column:
        """Why it cannot be read; NULL if it can."""
        given = F.try_variant_get(F.col(PAYLOAD), f"$.{self.name}", "variant")
        is_fit = F.left(F.schema_of_variant(given), F.lit(SHAPE)).isin(*self.what.shapes)
        is_fit = is_fit & F.coalesce(self.what.is_bounded(self.value), F.lit(False))
        if_missing = F.lit(f"{self.name} is missing" if self.is_needed else None)
        return F.when(given.isNull(), if_missing).when(~is_fit, F.lit(f"{self.name} is not {self.what.words}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The fields that a table reads of entries of one kind, and of one type or some."""

    table: str
    type: str | tuple[str, ...]
    fields: Sequence[Field]
    kind: str = EVENT

    def taken(self, journal: DataFrame) -> DataFrame:
        """The entries that say what is needed: where they are, and the fields."""
        fields = [field.value.alias(field.name) for field in self.fields]
        return self._judged(journal).where(F.col(REASON).isNull()).select(*KEPT, *fields)

    @property
    def is_meant(self) -> Column:
        """Whether an entry is one of those that the table reads."""
        types = (self.type,) if isinstance(self.type, str) else self.type
        return (F.col(KIND) == self.kind) & F.col(TYPE).isin(*types)

    @property
    def refusal(self) -> Column:
        """The table, and why it does not take an entry whose payload was parsed; no reason if it does or need not."""
        reason = F.when(self.is_meant, F.coalesce(*self._reasons()))
        return F.struct(F.lit(self.table).alias("table"), reason.alias("reason"))

    def _judged(self, journal: DataFrame) -> DataFrame:
        return _parsed(journal.where(self.is_meant)).withColumn(REASON, F.coalesce(*self._reasons()))

    def _reasons(self) -> Iterator[Column]:
        yield F.when(F.col(PAYLOAD).isNull(), F.lit(NOT_JSON))
        yield from (field.reason for field in self.fields)


def quarantine(journal: DataFrame, readings: Sequence[Extraction]) -> DataFrame:
    """Every entry that a table would not take, and why; the journal is read once for all of them."""
    entries = _parsed(journal.where(reduce(Column.__or__, (reading.is_meant for reading in readings))))
    refusals = F.filter(F.array(*(reading.refusal for reading in readings)), lambda each: each["reason"].isNotNull())
    rows = entries.select(GLOBAL_SEQ, F.explode(refusals).alias(REFUSAL), PAYLOAD_JSON)
    return rows.select(GLOBAL_SEQ, f"{REFUSAL}.table", f"{REFUSAL}.reason", PAYLOAD_JSON)


def _parsed(entries: DataFrame) -> DataFrame:
    return entries.withColumn(PAYLOAD, F.try_parse_json(PAYLOAD_JSON))


def as_declared(name: str, rows: DataFrame) -> DataFrame:
    """A table's rows with the columns and types that were declared for it."""
    columns = [column.split() for column in TABLES[name].split(", ")]
    return rows.select(*(F.col(column).cast(kind) for column, kind in columns))
