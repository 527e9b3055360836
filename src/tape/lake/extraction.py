"""The payload fields that a table reads, and why it cannot read some entries; nothing is coerced or dropped."""

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

MOST_COUNTED: Final = 10**12  # so that sums of millions do not overflow
MOST_MEASURED: Final = 1e15
KEPT: Final = (GLOBAL_SEQ, RUN_ID, SEQ, TS_MS, PAYLOAD_JSON)
PAYLOAD: Final = "payload"
REASON: Final = "rejection_reason"
REJECTION: Final = "rejection"
NOT_JSON: Final = "the payload is not JSON that Spark can read"


class FieldType(Enum):
    """The type of a field: Spark's type, the prefixes of the VARIANT types that fit, and a description."""

    TEXT = ("string", ("STR",), "text")
    FLAG = ("boolean", ("BOO",), "true or false")
    COUNT = ("bigint", ("BIG",), f"a whole number from 0 to {MOST_COUNTED}")
    NUMBER = ("double", ("BIG", "DEC", "DOU", "FLO"), f"a number up to {MOST_MEASURED:.0f}")

    def __init__(self, kind: str, shapes: tuple[str, ...], description: str) -> None:
        self.kind = kind
        self.shapes = shapes
        self.description = description

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
    """A field of a payload; an optional one may be missing, but not of another type."""

    name: str
    type: FieldType
    is_required: bool = True

    @property
    def value(self) -> Column:
        return F.try_variant_get(F.col(PAYLOAD), f"$.{self.name}", self.type.kind)

    @property
    def reason(self) -> Column:
        """Why the field cannot be read; NULL if it can."""
        given = F.try_variant_get(F.col(PAYLOAD), f"$.{self.name}", "variant")
        is_fit = F.left(F.schema_of_variant(given), F.lit(SHAPE)).isin(*self.type.shapes)
        is_fit = is_fit & F.coalesce(self.type.is_bounded(self.value), F.lit(False))
        if_missing = F.lit(f"{self.name} is missing" if self.is_required else None)
        return F.when(given.isNull(), if_missing).when(~is_fit, F.lit(f"{self.name} is not {self.type.description}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The fields that a table reads from entries of one kind and of one or several types."""

    table: str
    type: str | tuple[str, ...]
    fields: Sequence[Field]
    kind: str = EVENT

    def rows(self, journal: DataFrame) -> DataFrame:
        """The entries with all required fields: their positions, times and fields."""
        fields = [field.value.alias(field.name) for field in self.fields]
        return self._with_reason(journal).where(F.col(REASON).isNull()).select(*KEPT, *fields)

    @property
    def is_read(self) -> Column:
        """Whether the table reads an entry."""
        types = (self.type,) if isinstance(self.type, str) else self.type
        return (F.col(KIND) == self.kind) & F.col(TYPE).isin(*types)

    @property
    def rejection(self) -> Column:
        """The table, and why it cannot read a parsed entry; the reason is NULL if it can or does not need to."""
        reason = F.when(self.is_read, F.coalesce(*self._reasons()))
        return F.struct(F.lit(self.table).alias("table"), reason.alias("reason"))

    def _with_reason(self, journal: DataFrame) -> DataFrame:
        return _parsed(journal.where(self.is_read)).withColumn(REASON, F.coalesce(*self._reasons()))

    def _reasons(self) -> Iterator[Column]:
        yield F.when(F.col(PAYLOAD).isNull(), F.lit(NOT_JSON))
        yield from (field.reason for field in self.fields)


def quarantine(journal: DataFrame, extractions: Sequence[Extraction]) -> DataFrame:
    """Every entry that a table cannot read, and why; reads the journal once for all tables."""
    entries = _parsed(journal.where(reduce(Column.__or__, (extraction.is_read for extraction in extractions))))
    rejections = F.filter(
        F.array(*(extraction.rejection for extraction in extractions)), lambda each: each["reason"].isNotNull()
    )
    rows = entries.select(GLOBAL_SEQ, F.explode(rejections).alias(REJECTION), PAYLOAD_JSON)
    return rows.select(GLOBAL_SEQ, f"{REJECTION}.table", f"{REJECTION}.reason", PAYLOAD_JSON)


def _parsed(entries: DataFrame) -> DataFrame:
    return entries.withColumn(PAYLOAD, F.try_parse_json(PAYLOAD_JSON))


def as_declared(name: str, rows: DataFrame) -> DataFrame:
    """Selects and casts the columns that are declared for a table."""
    columns = [column.split() for column in TABLES[name].split(", ")]
    return rows.select(*(F.col(column).cast(kind) for column, kind in columns))
