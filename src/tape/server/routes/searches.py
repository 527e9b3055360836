"""`/reactions/{id}/dry-run` and `/backfill`: start searches through the whole history, and read their findings."""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from tape.core.errors import NotFound
from tape.core.reaction import check_reaction_id
from tape.core.search import DayFound, EntryFound, ErrorFound, Search, Searches, SearchKind
from tape.operations.reactions import GetReaction
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.schemas import Count, Id, parse_body


class SearchDetail(Struct, frozen=True, kw_only=True):
    """A search of the positions above `after` up to `through`; `reason` says why it failed.

    `searched` counts the positions that are done, `older` the matches that debouncing merged into newer ones. Samples
    are the newest matches. Only a backfill makes tasks, and never one that exists; only a dry run has days, samples
    and errors.
    """

    kind: Literal["dry_run", "backfill"]
    reaction_id: Id
    state: Literal["running", "done", "failed", "cancelled"]
    reason: str
    started_at_ms: int
    ended_at_ms: int | None
    after: Count
    through: Count
    searched: Count
    matches: Count
    older: Count
    made: Count
    days: list[DayFound]
    samples: list[EntryFound]
    errors: list[ErrorFound]

    @classmethod
    def of(cls, search: Search) -> "SearchDetail":
        own = {name: getattr(search, name) for name in ("kind", "reaction_id", "state", "reason", "started_at_ms")}
        found = {name: getattr(search.findings, name) for name in search.findings.__slots__}
        return msgspec.convert({**own, "ended_at_ms": search.ended_at_ms, **found}, cls, from_attributes=True)


class ReactionSearches(Struct, frozen=True, kw_only=True):
    """The last search of each kind that this server remembers."""

    dry_run: SearchDetail | None
    backfill: SearchDetail | None


class NewSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The positions to search: above `after` up to `through`, or up to the reaction's cursor."""

    after: Count = 0
    through: Count | None = None


async def begin_dry_run(request: Request, node: Node) -> Response:
    """Counts what a backfill would match; makes no tasks."""
    return await _begin(request, node, SearchKind.DRY_RUN)


async def begin_backfill(request: Request, node: Node) -> Response:
    return await _begin(request, node, SearchKind.BACKFILL)


async def show_searches(request: Request, node: Node) -> Response:
    reaction_id, searches = await _reaction(request, node)
    found = {kind.value: SearchDetail.of(search) for kind, search in searches.of(reaction_id).items()}
    return Response.json(ReactionSearches(dry_run=found.get("dry_run"), backfill=found.get("backfill")))


async def cancel_search(request: Request, node: Node) -> Response:
    """Cancels the search; tasks that it has made stay, and the next backfill continues."""
    reaction_id, searches = await _reaction(request, node)
    return Response.json(SearchDetail.of(await searches.cancel(reaction_id)))


async def _begin(request: Request, node: Node, kind: SearchKind) -> Response:
    new: NewSearch = parse_body(await request.json(), NewSearch) if request.is_unread else NewSearch()
    reaction_id, searches = await _reaction(request, node)
    return Response.json(SearchDetail.of(await searches.begin(kind, reaction_id, new.after, new.through)), 202)


async def _reaction(request: Request, node: Node) -> tuple[str, Searches]:
    reaction_id = check_reaction_id(request.values["reaction_id"])
    await node.operations.call(GetReaction(reaction_id=reaction_id))
    if node.searches is None:
        raise NotFound("this server's store keeps no history to search; one in a file or in Postgres does")
    return reaction_id, node.searches


_ID: Final = Parameter(name="reaction_id", location="path", schema=Id, description="Which reaction.")
_BEGUN: Final = ResponseSpec(status=202, schema=SearchDetail)

ROUTES: Final = (
    Route(
        method="POST", path="/reactions/{reaction_id}/dry-run", name="beginDryRun",
        summary="Count with Spark what a reaction would have matched in the whole history",
        handler=respond_with(begin_dry_run), parameters=(_ID,), body=NewSearch, is_body_required=False, response=_BEGUN,
        problems=(400, 404, 413, 415, 429, 503),
    ),
    Route(
        method="POST", path="/reactions/{reaction_id}/backfill", name="beginBackfill",
        summary="Make with Spark the tasks that a reaction would have from the beginning",
        handler=respond_with(begin_backfill), parameters=(_ID,), body=NewSearch, is_body_required=False,
        response=_BEGUN, problems=(400, 404, 413, 415, 429, 503),
    ),
    Route(
        method="GET", path="/reactions/{reaction_id}/searches", name="showSearches",
        summary="Show the progress and findings of a reaction's last dry run and last backfill",
        handler=respond_with(show_searches), parameters=(_ID,), response=ResponseSpec(schema=ReactionSearches),
        problems=(400, 404, 503),
    ),
    Route(
        method="DELETE", path="/reactions/{reaction_id}/searches", name="cancelSearch",
        summary="Cancel the search in progress", handler=respond_with(cancel_search), parameters=(_ID,),
        response=ResponseSpec(schema=SearchDetail), problems=(400, 404, 409, 503),
    ),
)  # fmt: skip
