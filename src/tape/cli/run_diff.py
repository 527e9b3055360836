"""How two runs differ, as a table or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Final

from tape.cli import output
from tape.core.diff import Change, Diff, Row
from tape.core.event import Entry

FIELDS: Final = 3  # of one entry; the rest is counted
WIDEST: Final = 28
NOTHING: Final = "–"

Line = tuple[str, str, str, str, str, str]


def say(found: Diff, limit: int, more: str = "… and more; --limit shows it") -> None:
    """The table, for people: what differs, field by field."""
    output.say(summary(found))
    lines = list(islice(_lines(found), limit + 1))
    if lines:
        heads = ("A", "B", "type", "field", output.fit(found.one, WIDEST), output.fit(found.other, WIDEST))
        output.table([tuple(output.paint(head, "bold") for head in heads), *lines[:limit]])
    if len(lines) > limit:
        output.say(more)


def say_json(found: Diff) -> None:
    """The same for programs, whole."""
    output.say_json(
        {
            "one": found.one,
            "other": found.other,
            "shared": found.shared,
            "rows": len(found.rows),
            "differing": len(found.differing),
        }
    )
    for row in found.rows:
        output.say_json({"is_same": row.is_same, "one": _facts(row.one), "other": _facts(row.other), **_changed(row)})


def summary(found: Diff) -> str:
    """Where they part, and how much of what follows is the same."""
    shared = output.count(found.shared, "entry", "entries")
    begin = f"{found.one} and {found.other} share {shared if found.shared else 'nothing'}"
    if not found.rows:
        return f"{begin}, and neither has more"
    places = output.count(len(found.rows), "place", "places")
    return f"{begin}; of {places} after that {len(found.differing):,} differ"


def _lines(found: Diff) -> Iterator[Line]:
    """An entry's place and type stand in the first of its lines only."""
    for row in found.differing:
        where = _seq(row.one), _seq(row.other), _type(row)
        for field in _fields(row):
            yield (*where, *field)
            where = "", "", ""


def _fields(row: Row) -> Iterator[tuple[str, str, str]]:
    if not (changes := row.changes):
        yield "", _text(row.one), _text(row.other)
    for change in changes[:FIELDS]:
        yield _fitted(change.path), _value(change.one), _value(change.other)
    if len(changes) > FIELDS:
        yield f"… {output.count(len(changes) - FIELDS, 'more', 'more')}", "", ""


def _seq(entry: Entry | None) -> str:
    return "" if entry is None else str(entry.seq)


def _type(row: Row) -> str:
    types = dict.fromkeys(entry.type for entry in row if entry is not None)
    return " ≠ ".join(types)


def _text(entry: Entry | None) -> str:
    if entry is None:
        return NOTHING
    return _fitted(entry.payload_json or f"{len(entry.payload_bytes or b''):,} bytes")


def _value(text: str | None) -> str:
    return NOTHING if text is None else _fitted(text)


def _fitted(text: str) -> str:
    return output.fit(output.escape(text), WIDEST)


def _facts(entry: Entry | None) -> dict[str, object] | None:
    return None if entry is None else {"seq": entry.seq, "global_seq": entry.global_seq, "type": entry.type}


def _changed(row: Row) -> dict[str, object]:
    return {"changes": [_parsed(change) for change in row.changes]} if row.changes else {}


def _parsed(change: Change) -> dict[str, object]:
    sides = {"one": change.one, "other": change.other}
    return {"path": change.path, **{name: _json(text) for name, text in sides.items() if text is not None}}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
