"""`/lake`: the lake's status, its tables, and SQL queries."""

from typing import Final

from tape.core.errors import NotFound, UsageError, quoted
from tape.core.lake import LakeQueries
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Answers, Parameter, Route, answering
from tape.server.node import Node
from tape.server.routes.lake_shapes import (
    MOST_ROWS,
    LakeQuery,
    LakeQueryResult,
    LakeStatusDetail,
    LakeTableRows,
    LakeTables,
    LakeTableSummary,
    Limit,
)
from tape.server.routes.shapes import shaped


async def show_lake(request: Request, node: Node) -> Response:
    return Response.json(LakeStatusDetail.of(await lake_of(node).status()))


async def list_tables(request: Request, node: Node) -> Response:
    return Response.json(LakeTables(tables=[LakeTableSummary.of(table) for table in await lake_of(node).tables()]))


async def show_table(request: Request, node: Node) -> Response:
    table, rows = await lake_of(node).table(request.values["name"], _limit(request.parameter("limit")))
    return Response.json(LakeTableRows.of(table, rows))


async def query_lake(request: Request, node: Node) -> Response:
    """Runs one SQL query, which changes nothing and reads nothing but the lake."""
    query: LakeQuery = shaped(await request.json(), LakeQuery)
    return Response.json(LakeQueryResult.of(await lake_of(node).query(query.sql, query.limit)))


def lake_of(node: Node) -> LakeQueries:
    """The server's lake; NotFound if its store cannot have one."""
    if node.lake is None:
        raise NotFound("this server's store has no lake; one in a file or in Postgres can have one")
    return node.lake


def _limit(text: str | None) -> int:
    if text is None:
        return MOST_ROWS
    if not (text.isascii() and text.isdecimal() and len(text) <= 5) or not 1 <= int(text) <= MOST_ROWS:
        raise UsageError(f"limit is 1 to {MOST_ROWS:,}, not {quoted(text)}")
    return int(text)


_NAME: Final = Parameter(name="name", place="path", shape=str, about="Which table.")
_LIMIT: Final = Parameter(name="limit", place="query", shape=Limit, about="How many rows at most.")
_PROBLEMS: Final = (400, 404, 409, 410, 503)

ROUTES: Final = (
    Route(
        method="GET", path="/lake", name="showLake",
        summary="Show which positions are cold, warm and hot, and how far the lake is behind",
        handler=answering(show_lake), answers=Answers(shape=LakeStatusDetail), problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/lake/tables", name="listLakeTables", summary="List the tables",
        handler=answering(list_tables), answers=Answers(shape=LakeTables), problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/lake/tables/{name}", name="showLakeTable", summary="Look at a table",
        handler=answering(show_table), parameters=(_NAME, _LIMIT), answers=Answers(shape=LakeTableRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="POST", path="/lake/query", name="queryLake", summary="Run one SQL query on the lake",
        handler=answering(query_lake), body=LakeQuery, answers=Answers(shape=LakeQueryResult),
        problems=(400, 404, 413, 415, 429, 503),
    ),
)  # fmt: skip
