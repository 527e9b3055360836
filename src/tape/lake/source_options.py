"""The options of the Spark source, validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tape.core.errors import UsageError, quoted

EARLIEST: Final = -1
ROWS_PER_PARTITION: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a reader; `EARLIEST` as `after` means before position 1."""

    store: str | None = None
    after: int = 0
    through: int | None = None
    rows_per_partition: int = ROWS_PER_PARTITION
    max_rows_per_trigger: int | None = None
    has_pushdown: bool = False


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """Reads Tape's options; Spark adds its own, which are ignored."""
    start = options.get("fromGlobalSeq", "0")
    return SourceOptions(
        store=options.get("store") or None,
        after=EARLIEST if start.lower() == "earliest" else _count("fromGlobalSeq", start, 0),
        through=_optional("toGlobalSeq", options, 0),
        rows_per_partition=_optional("rowsPerPartition", options, 1) or ROWS_PER_PARTITION,
        max_rows_per_trigger=_optional("maxRowsPerTrigger", options, 1),
        has_pushdown=_flag("pushdown", options.get("pushdown", "false")),
    )


def _optional(name: str, options: Mapping[str, str], least: int) -> int | None:
    text = options.get(name)
    return None if text is None else _count(name, text, least)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{name} must be true or false, not {quoted(text)}")
    return text.lower() == "true"


def _count(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) < 1 << 63:
        raise UsageError(f"{name} must be a whole number from {least} on, not {quoted(text)}")
    return int(text)
