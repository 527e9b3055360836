"""How two runs differ, within the bounds of an answer."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from tape.core.diff import Diff, DiffRow
from tape.core.event_page import answer_size
from tape.core.ids import RunId, Seq
from tape.core.ledger_diff import LedgerRow
from tape.core.page import ANSWER_BYTES

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """Two runs that share entries 1 to `shared`; of the places after it, `differing` differ.

    `entries` are the first that differ, and `ledgers` the first decisions and effects, as many as an answer carries.
    """

    one: RunId
    other: RunId
    shared: Seq
    places: int
    differing: int
    entries: tuple[DiffRow, ...]
    ledgers: tuple[LedgerRow, ...]


def whole_diff(found: Diff, ledgers: Sequence[LedgerRow] = ()) -> RunDiff:
    """All rows of a comparison."""
    differing = found.differing
    return RunDiff(
        one=found.one,
        other=found.other,
        shared=found.shared,
        places=len(found.rows),
        differing=len(differing),
        entries=differing,
        ledgers=tuple(ledgers),
    )


def bounded_diff(found: Diff, ledgers: Sequence[LedgerRow], limit: int) -> RunDiff:
    """The first rows of a comparison; half of an answer is for entries, half for ledgers."""
    whole = whole_diff(found, ledgers)
    return replace(
        whole,
        entries=tuple(_within(islice(whole.entries, limit), _entries_size)),
        ledgers=tuple(_within(islice(whole.ledgers, limit), _ledger_size)),
    )


def _within(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
    room = ANSWER_BYTES // 2
    for row in rows:
        room -= size(row)
        if room < 0:
            return
        yield row


def _entries_size(row: DiffRow) -> int:
    """At most how many bytes a row takes: a payload is a text of JSON, within which some characters take two."""
    return sum(answer_size(entry) + _escaped(entry.payload_json or "") for entry in row if entry is not None)


def _escaped(text: str) -> int:
    return text.count('"') + text.count("\\")


def _ledger_size(row: LedgerRow) -> int:
    """At most how many bytes a row takes: in JSON a quotation mark within a body takes two."""
    texts = (row.place, row.name, *(row.one or ()), *(row.other or ()))
    return 256 + 2 * sum(len(text.encode()) for text in texts)
