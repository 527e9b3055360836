"""Prints how two runs differ, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from tape.cli import output
from tape.core.diff import Change, DiffRow
from tape.core.event import Entry
from tape.core.run_diff import RunDiff

FIELDS: Final = 3  # per entry; the others are counted
WIDEST: Final = 28
NARROWEST: Final = 10
TYPE: Final = 14
BESIDE: Final = 32  # the width of two seqs, a type and the gaps between columns
NOTHING: Final = "–"

Line = tuple[str, str, str, str, str, str]


def write(found: RunDiff, limit: int, more: str = "… and more; --limit shows it") -> None:
    """Prints the differing fields as a table."""
    output.write(summary(found))
    cells = _widest()
    lines = list(islice(_lines(found, cells), limit + 1))
    if lines:
        heads = ("A", "B", "type", "field", output.fit(found.one, cells), output.fit(found.other, cells))
        output.table([tuple(output.paint(head, "bold") for head in heads), *lines[:limit]])
    if len(lines) > limit or len(found.entries) < found.differing:
        output.write(more)


def write_json(found: RunDiff, rows: Sequence[DiffRow]) -> None:
    """Prints rows as JSON, after a line that counts them."""
    output.write_json(
        {
            "one": found.one,
            "other": found.other,
            "shared": found.shared,
            "rows": found.places,
            "differing": found.differing,
        }
    )
    for row in rows:
        output.write_json(_row_facts(row))


def summary(found: RunDiff) -> str:
    """The last shared seq, and how many of the later entries are the same."""
    shared = output.count(found.shared, "entry", "entries")
    begin = f"{found.one} and {found.other} share {shared if found.shared else 'nothing'}"
    if not found.places:
        return f"{begin}, and neither has more"
    places = output.count(found.places, "place", "places")
    return f"{begin}; of {places} after that {found.differing:,} differ"


def _widest() -> int:
    """How wide a field or value may be, so that the table fits the terminal."""
    available = output.columns()
    return WIDEST if available is None else max(NARROWEST, min(WIDEST, (available - BESIDE) // 3))


def _lines(found: RunDiff, cells: int) -> Iterator[Line]:
    """The seq and type of an entry are only in its first line."""
    for row in found.entries:
        where = _seq(row.one), _seq(row.other), _type(row)
        for field in _fields(row, cells):
            yield (*where, *field)
            where = "", "", ""


def _fields(row: DiffRow, cells: int) -> Iterator[tuple[str, str, str]]:
    if not (changes := row.changes):
        yield "", *_sides(_text(row.one), _text(row.other), cells)
    for change in changes[:FIELDS]:
        yield _end_of(change.path, cells), *_sides(change.one, change.other, cells)
    if len(changes) > FIELDS:
        yield f"… {output.count(len(changes) - FIELDS, 'more', 'more')}", "", ""


def _seq(entry: Entry | None) -> str:
    return "" if entry is None else str(entry.seq)


def _type(row: DiffRow) -> str:
    types = dict.fromkeys(entry.type for entry in row if entry is not None)
    return output.fit(" ≠ ".join(types), output.columns() and TYPE)


def _text(entry: Entry | None) -> str | None:
    return entry and (entry.payload_json or f"{len(entry.payload_bytes or b''):,} bytes")


def _sides(one: str | None, other: str | None, cells: int) -> tuple[str, str]:
    """Both texts, shortened so that their first difference stays visible."""
    texts = [NOTHING if text is None else output.escape(text) for text in (one, other)]
    same = _same(*texts)
    if same > cells - 3:
        texts = [f"…{text[same - cells // 3 :]}" for text in texts]
    mine, theirs = (output.fit(text, cells) for text in texts)
    return mine, theirs


def _same(one: str, other: str) -> int:
    """The length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def _end_of(path: str, cells: int) -> str:
    """A path, or as much of its end as fits, because paths differ at the end."""
    return output.fit(output.escape(path)[::-1], cells)[::-1]


def _row_facts(row: DiffRow) -> dict[str, object]:
    """A row as JSON; payloads that cannot be compared by field are included."""
    changes = [_parsed(change) for change in row.changes]
    is_bare = row.is_same or bool(changes)
    sides = {"one": _facts(row.one, is_bare), "other": _facts(row.other, is_bare)}
    return {"is_same": row.is_same, **sides, **({"changes": changes} if changes else {})}


def _facts(entry: Entry | None, is_bare: bool) -> dict[str, object] | None:
    if entry is None:
        return None
    facts: dict[str, object] = {"seq": entry.seq, "global_seq": entry.global_seq, "type": entry.type}
    return facts if is_bare or entry.payload_json is None else {**facts, "payload": entry.payload}


def _parsed(change: Change) -> dict[str, object]:
    sides = {"one": change.one, "other": change.other}
    return {"path": change.path, **{name: _json(text) for name, text in sides.items() if text is not None}}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
