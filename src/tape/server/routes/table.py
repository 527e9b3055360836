"""All routes; the router and both API documents are made from this table."""

from typing import Final

from tape.server.http.route import Route
from tape.server.routes import (
    console,
    documents,
    event_pages,
    events,
    health,
    lake,
    metrics,
    operations,
    searches,
    streams,
    values,
)

_OWN: Final = (
    operations.LIST,
    *health.ROUTES,
    *metrics.ROUTES,
    *events.ROUTES,
    *event_pages.ROUTES,
    *streams.ROUTES,
    *searches.ROUTES,
    *values.ROUTES,
    *lake.ROUTES,
)
_API: Final = (*_OWN, *operations.derived(_OWN))

ROUTES: Final[tuple[Route, ...]] = (*_API, *documents.routes(_API), *console.ROUTES)
