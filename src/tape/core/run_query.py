"""Which runs a list has, in which order, and where its next page begins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from json import dumps
from typing import Final, Literal, NamedTuple

from tape.core.errors import InvalidCursor, UsageError, quoted
from tape.core.ids import ID_IN_WORDS, SYSTEM_PREFIX, is_id
from tape.core.page import Page, decode_cursor, encode_cursor
from tape.core.run import MAX_LENGTH, RunRecord

LAST_MS: Final = 1 << 62
MAX_PAGE: Final = 1_000


class RunOrder(StrEnum):
    """`live`: open runs first opened first, then closed runs last closed first; `id`: by run id."""

    LIVE = "live"
    NEWEST = "newest"
    OLDEST = "oldest"
    ID = "id"


class StatusFilter(StrEnum):
    """The status of the runs to list; open runs are running or stale."""

    OPEN = "open"
    RUNNING = "running"
    STALE = "stale"
    COMPLETE = "complete"


class RunSection(NamedTuple):
    """A part of a list that is read along one index; `is_open` None: open and closed runs."""

    by: Literal["opened", "closed", "id"]
    is_descending: bool
    is_open: bool | None


class RunPosition(NamedTuple):
    """A run's place in a list: the number of the section, the time it is ordered by, and its id."""

    section: int
    at_ms: int
    run_id: str


LEASE_STATUSES: Final = (StatusFilter.RUNNING, StatusFilter.STALE)
LIVE: Final = (RunSection("opened", False, True), RunSection("closed", True, False))


@dataclass(frozen=True, kw_only=True)  # without slots, because the request for a list of runs has another base
class RunQuery:
    """Filters and order of a list of runs; system runs are never listed.

    Times are milliseconds; `after` includes the time and `before` excludes it. Without an order a list by prefix is
    ordered by id, one with another filter than the status newest first, and any other is `live`. Newest and oldest mean
    the time of opening, or that of closing if it is bounded. A run that is opened or closed while pages are read may be
    listed twice or left out; any other is listed once.
    """

    status: StatusFilter | None = None
    app: str | None = None
    label: str | None = None
    prefix: str | None = None
    parent: str | None = None
    opened_after: int = 0
    opened_before: int = LAST_MS
    closed_after: int = 0
    closed_before: int = LAST_MS
    order: RunOrder | None = None

    def __post_init__(self) -> None:
        for name in ("app", "label"):
            text = getattr(self, name)
            if text is not None and not (len(text) <= MAX_LENGTH and text.isprintable()):
                raise UsageError(f"{name} is printable text of at most {MAX_LENGTH} characters, not {quoted(text)}")
        for name in ("prefix", "parent"):
            text = getattr(self, name)
            if text is not None and not is_id(text):
                raise UsageError(f"{name} must be {ID_IN_WORDS}, not {quoted(text)}")
        for name in ("opened_after", "opened_before", "closed_after", "closed_before"):
            if not 0 <= getattr(self, name) <= LAST_MS:
                raise UsageError(f"{name} is a time in milliseconds since 1970, not {getattr(self, name)}")
        if self.bounds_closing and self.is_open:
            raise UsageError(f"a run that is {self.status} has no time of closing; leave out the status or the bound")

    @property
    def bounds_closing(self) -> bool:
        return self.closed_after > 0 or self.closed_before < LAST_MS

    @property
    def is_open(self) -> bool | None:
        """Whether only open runs are listed, or only closed ones; None: both."""
        if self.status is None:
            return False if self.bounds_closing else None
        return self.status is not StatusFilter.COMPLETE

    @cached_property
    def sections(self) -> tuple[RunSection, ...]:
        """What the list consists of, one after the other."""
        order = self._order()
        if order is RunOrder.LIVE:
            return tuple(section for section in LIVE if self.is_open in (None, section.is_open))
        if order is RunOrder.ID:
            return (RunSection("id", False, self.is_open),)
        return (RunSection("closed" if self.bounds_closing else "opened", order is RunOrder.NEWEST, self.is_open),)

    def start(self, section: int) -> RunPosition:
        """The position before the first run of a section."""
        found = self.sections[section]
        if found.by == "id":
            return RunPosition(section, 0, "")
        after, before = self.bounds(found.by)
        return RunPosition(section, before if found.is_descending else after, "")

    def bounds(self, by: Literal["opened", "closed"]) -> tuple[int, int]:
        """The first time of opening or closing, and the one after the last."""
        if by == "opened":
            return self.opened_after, self.opened_before
        return self.closed_after, self.closed_before

    def position(self, record: RunRecord) -> RunPosition:
        """The place of a run that matches."""
        is_open = record.head.is_open
        number, section = next(each for each in enumerate(self.sections) if each[1].is_open in (None, is_open))
        times = {"opened": record.opened_at_ms, "closed": record.closed_at_ms or 0, "id": 0}
        return RunPosition(number, times[section.by], record.run_id)

    def follows(self, position: RunPosition, after: RunPosition) -> bool:
        """Whether a position comes after another one in this list."""
        if position.section != after.section:
            return position.section > after.section
        is_descending = self.sections[position.section].is_descending
        return position[1:] < after[1:] if is_descending else position[1:] > after[1:]

    def in_order(self, records: Iterable[RunRecord]) -> list[RunRecord]:
        """Runs that match in the order of this list."""
        places = [(self.position(record), record) for record in records]
        ordered: list[RunRecord] = []
        for number, section in enumerate(self.sections):
            inside = [(place, record) for place, record in places if place.section == number]
            inside.sort(key=lambda each: each[0], reverse=section.is_descending)
            ordered += [record for _, record in inside]
        return ordered

    def matches(self, record: RunRecord) -> bool:
        """Whether a run is in the list."""
        meta, lineage, closed_at = record.meta, record.head.lineage, record.closed_at_ms or 0
        return (
            not record.run_id.startswith(SYSTEM_PREFIX)
            and record.run_id.startswith(self.prefix or "")
            and self.is_open in (None, record.head.is_open)
            and (self.status not in LEASE_STATUSES or record.status.value == self.status)
            and self.app in (None, meta.app)
            and self.label in (None, meta.label)
            and (self.parent is None or (bool(lineage) and lineage[-1].run_id == self.parent))
            and self.opened_after <= record.opened_at_ms < self.opened_before
            and (not self.bounds_closing or self.closed_after <= closed_at < self.closed_before)
        )

    def page(self, found: Sequence[RunRecord], limit: int) -> Page[RunRecord]:
        """The first runs of what was found; the next cursor is empty if those were all."""
        runs = found[:limit]
        cursor = encode_cursor(self.position(runs[-1]), self._text()) if len(found) > limit else ""
        return Page(runs, cursor)

    def decode(self, cursor: str) -> RunPosition | None:
        """The position in a cursor of this list; an empty cursor is the start."""
        place = decode_cursor(cursor, int, int, str, question=self._text()) if cursor else None
        if place is None:
            return None
        position = RunPosition._make(place)
        if position.section not in range(len(self.sections)) or not is_id(position.run_id):
            raise InvalidCursor(f"a cursor is the next_cursor of an answer to the same question, not {quoted(cursor)}")
        return position

    def _order(self) -> RunOrder:
        if self.order is not None:
            return self.order
        if self.prefix is not None:
            return RunOrder.ID
        return RunOrder.LIVE if self == RunQuery(status=self.status) else RunOrder.NEWEST

    def _text(self) -> str:
        return dumps(["runs", {each.name: getattr(self, each.name) for each in fields(RunQuery)}])


OPEN_RUNS: Final = RunQuery(status=StatusFilter.OPEN)
CLOSED_RUNS: Final = RunQuery(status=StatusFilter.COMPLETE)
