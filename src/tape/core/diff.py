"""Compares two runs: their last shared entry, and the differences after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.event import Entry
from tape.core.fork import FORK, RUN, segments
from tape.core.ids import RunId, Seq
from tape.core.run import Head

MUTATION: Final = "mutation"


class Change(NamedTuple):
    """A field that differs: its path, and its JSON text in each run; None if it is absent."""

    path: str
    one: str | None
    other: str | None


class DiffRow(NamedTuple):
    """The entries of both runs at the same place after the last shared entry; None where a run has no more."""

    one: Entry | None
    other: Entry | None

    @property
    def is_same(self) -> bool:
        """Whether both entries have the same type and content."""
        return self.one is not None and self.other is not None and _content(self.one) == _content(self.other)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The fields that differ between two entries of one type; none for entries of different types."""
        if self.one is None or self.other is None or self.is_same or _kind(self.one) != _kind(self.other):
            return ()
        return tuple(_changes(_leaves(self.one.payload), _leaves(self.other.payload)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Two runs that share entries 1 to `shared`; the rows compare what follows."""

    one: RunId
    other: RunId
    shared: Seq
    rows: tuple[DiffRow, ...]

    @property
    def differing(self) -> tuple[DiffRow, ...]:
        return tuple(row for row in self.rows if not row.is_same)


def last_shared_seq(heads: Mapping[RunId, Head], one: RunId, other: RunId) -> Seq:
    """The last seq at which both runs have the same entry, because one run owns it for both."""
    pieces, others = (segments(heads[run_id].lineage, run_id) for run_id in (one, other))
    for mine, theirs in zip(pieces, others, strict=False):
        if mine.run_id != theirs.run_id:
            return Seq(mine.first_seq - 1)
        if mine.last_seq != theirs.last_seq:
            return min(last for last in (mine.last_seq, theirs.last_seq) if last is not None)
    return heads[one].last_seq


def side_by_side(one: Sequence[Entry], other: Sequence[Entry]) -> tuple[DiffRow, ...]:
    """Pairs the entries of two runs after their last shared one.

    The fork entry and the mutation of a child have no counterpart in the parent, so they pair with nothing, or with
    those of a sibling. The entries after them pair with the parent's next entries.
    """
    mine, theirs = _preamble(one), _preamble(other)
    begin = zip_longest(one[:mine], other[:theirs])
    rest = zip_longest(one[mine:], other[theirs:])
    return tuple(DiffRow(*pair) for pairs in (begin, rest) for pair in pairs)


def _preamble(entries: Sequence[Entry]) -> int:
    if not entries or _kind(entries[0]) != (RUN, FORK):
        return 0
    return 2 if len(entries) > 1 and entries[1].type == MUTATION else 1


def _kind(entry: Entry) -> tuple[str, str]:
    return entry.kind, entry.type


def _content(entry: Entry) -> tuple[object, ...]:
    return (*_kind(entry), entry.payload_json, entry.payload_bytes)


def _changes(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Change]:
    for path in {**one, **other}:
        if one.get(path) != other.get(path):
            yield Change(path, one.get(path), other.get(path))


def _leaves(payload: JsonValue | bytes) -> dict[str, str]:
    if isinstance(payload, bytes):
        return {"": f"{len(payload):,} bytes, {sha256(payload).hexdigest()[:12]}"}
    return {path: codec.encode(value) for path, value in _walk("", payload)}


def _walk(path: str, value: Any) -> Iterator[tuple[str, JsonValue]]:
    """Every leaf value with its path; paths are unique."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _walk(path + _step(name, is_first=not path), inner)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _walk(f"{path}[{place}]", inner)
    else:
        yield path, value


def _step(name: str, *, is_first: bool) -> str:
    """One name as part of a path, in quotes if it could be mistaken for more of the path."""
    if not name.replace("-", "_").isidentifier():
        return f"[{codec.encode(name)}]"
    return name if is_first else f".{name}"
