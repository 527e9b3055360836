"""Lists of runs: composes the statement of a page from the parts in `run_pages.sql`."""

from collections.abc import Iterator
from typing import NamedTuple

from tape.core.lease import STALE
from tape.core.run_query import LAST_MS, LEASE_STATUSES, RunPosition, RunQuery, RunSection, StatusFilter
from tape.store.clock import now_ms
from tape.store.connection import Query

STALE_MS = int(STALE.total_seconds() * 1000)


class RunPages(NamedTuple):
    """The parts of the statements of all lists of runs.

    A page is read along one index: that of the ids, of the closing times, of a parent's children, of the open runs, of
    a label or an app, of the closed runs, or of all. Other filters are checked along it.
    """

    runs: str
    open_runs: str
    of_users: str
    of_users_unindexed: str
    is_open: str
    is_closed: str
    is_stale: str
    is_renewed: str
    of_app: str
    of_label: str
    of_parent: str
    with_prefix: str
    opened_between: str
    closed_between: str
    newest: str
    oldest: str
    newest_open: str
    oldest_open: str
    newest_closed: str
    oldest_closed: str
    by_id: str

    def query(self, query: RunQuery, begin: RunPosition, limit: int) -> Query:
        """The query for the runs after a position, in its section of the list."""
        section, prefix = query.sections[begin.section], query.prefix or ""
        parameters = {
            "now_ms": now_ms(),
            "stale_ms": STALE_MS,
            "app": query.app,
            "label": query.label,
            "parent": query.parent,
            "prefix": prefix,
            "prefix_end": f"{prefix}\x7f",  # above every character of an id
            "opened_after": query.opened_after,
            "opened_before": query.opened_before,
            "closed_after": query.closed_after,
            "closed_before": query.closed_before,
            "at": begin.at_ms,
            "id": begin.run_id,
            "low_id": max(prefix, begin.run_id and f"{begin.run_id}\x01"),  # below every character of an id
            "limit": limit,
        }
        return Query("\n".join(self._parts(query, section)), parameters)

    def _parts(self, query: RunQuery, section: RunSection) -> Iterator[str]:
        is_open_first = section.by == "opened" and section.is_open is True and query.parent is None
        if is_open_first:
            yield self.open_runs
        else:
            is_described = (query.app, query.label, query.parent) != (None, None, None)
            yield self.runs
            yield self.of_users_unindexed if is_described and section.by == "opened" else self.of_users
        yield from self._conditions(query, section)
        if section.by == "id":
            yield self.by_id
        elif section.by == "closed":
            yield self.newest_closed if section.is_descending else self.oldest_closed
        elif is_open_first:
            yield self.newest_open if section.is_descending else self.oldest_open
        else:
            yield self.newest if section.is_descending else self.oldest

    def _conditions(self, query: RunQuery, section: RunSection) -> Iterator[str]:
        if section.is_open is not None:
            yield self.is_open if section.is_open else self.is_closed
        if query.status in LEASE_STATUSES:
            yield self.is_stale if query.status is StatusFilter.STALE else self.is_renewed
        equal = ((query.app, self.of_app), (query.label, self.of_label), (query.parent, self.of_parent))
        yield from (part for value, part in equal if value is not None)
        if query.prefix is not None and section.by != "id":
            yield self.with_prefix
        if section.by != "opened" and (query.opened_after, query.opened_before) != (0, LAST_MS):
            yield self.opened_between
        if section.by != "closed" and query.bounds_closing:
            yield self.closed_between
