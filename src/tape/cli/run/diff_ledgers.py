"""Prints the decisions and effects of two runs, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tape.cli import output
from tape.core.ledger_diff import LedgerRow, Side

WIDEST: Final = 40
NOTHING: Final = "–"


def write(rows: Sequence[LedgerRow], limit: int) -> None:
    """Prints a table: same rows are marked, others show both sides."""
    if not rows:
        return
    differing = sum(not row.is_same for row in rows)
    output.write()
    places = output.count(len(rows), "decision or effect", "decisions and effects")
    output.write(f"of {places} {differing:,} differ")
    heads = tuple(output.paint(head, "bold") for head in ("", "what", "place", "A", "B"))
    output.table([heads, *map(_line, rows[:limit])])
    if len(rows) > limit:
        output.write("… and more; --limit shows it")


def write_json(rows: Sequence[LedgerRow]) -> None:
    """Prints all rows as JSON."""
    for row in rows:
        sides = {"one": _facts(row.one), "other": _facts(row.other)}
        output.write_json({"ledger": row.what, "place": row.place, "name": row.name, "is_same": row.is_same, **sides})


def _line(row: LedgerRow) -> tuple[str, ...]:
    mark = "=" if row.is_same else output.paint("≠", "yellow")
    return mark, row.what, output.fit(output.escape(row.place), WIDEST), _text(row.one), _text(row.other)


def _text(side: Side | None) -> str:
    if side is None:
        return NOTHING
    return output.fit(output.escape(f"{side.status} {side.response_json}".strip()), WIDEST)


def _facts(side: Side | None) -> dict[str, str] | None:
    return None if side is None else side._asdict()
