"""`/lake`: the lake's status, its tables, and SQL queries."""

from typing import Final

from tape.core.errors import NotFound
from tape.core.lake import LakeQueries
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.lake_schemas import (
    MOST_ROWS,
    LakeQuery,
    LakeQueryResult,
    LakeStatusDetail,
    LakeTableRows,
    LakeTables,
    LakeTableSummary,
    Limit,
)
from tape.server.routes.parameters import limit_of
from tape.server.routes.schemas import parse_body


async def show_lake(request: Request, node: Node) -> Response:
    return Response.json(LakeStatusDetail.of(await lake_of(node).status()))


async def list_tables(request: Request, node: Node) -> Response:
    return Response.json(LakeTables(tables=[LakeTableSummary.of(table) for table in await lake_of(node).tables()]))


async def show_table(request: Request, node: Node) -> Response:
    table, rows = await lake_of(node).table(request.values["name"], limit_of(request, MOST_ROWS, MOST_ROWS))
    return Response.json(LakeTableRows.of(table, rows))


async def query_lake(request: Request, node: Node) -> Response:
    """Runs one SQL query, which changes nothing and reads nothing but the lake."""
    query: LakeQuery = parse_body(await request.json(), LakeQuery)
    return Response.json(LakeQueryResult.of(await lake_of(node).query(query.sql, query.limit)))


def lake_of(node: Node) -> LakeQueries:
    """The server's lake; NotFound if its store cannot have one."""
    if node.lake is None:
        raise NotFound("this server's store has no lake; one in a file or in Postgres can have one")
    return node.lake


_NAME: Final = Parameter(name="name", location="path", schema=str, description="Which table.")
_LIMIT: Final = Parameter(name="limit", location="query", schema=Limit, description="How many rows at most.")
_PROBLEMS: Final = (400, 404, 409, 410, 503)

ROUTES: Final = (
    Route(
        method="GET", path="/lake", name="showLake",
        summary="Show which positions are cold, warm and hot, and how far the lake is behind",
        handler=respond_with(show_lake), response=ResponseSpec(schema=LakeStatusDetail), problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/lake/tables", name="listLakeTables", summary="List the tables",
        handler=respond_with(list_tables), response=ResponseSpec(schema=LakeTables), problems=_PROBLEMS,
    ),
    Route(
        method="GET", path="/lake/tables/{name}", name="showLakeTable", summary="Look at a table",
        handler=respond_with(show_table), parameters=(_NAME, _LIMIT), response=ResponseSpec(schema=LakeTableRows),
        problems=_PROBLEMS,
    ),
    Route(
        method="POST", path="/lake/query", name="queryLake", summary="Run one SQL query on the lake",
        handler=respond_with(query_lake), body=LakeQuery, response=ResponseSpec(schema=LakeQueryResult),
        problems=(400, 404, 413, 415, 429, 503),
    ),
)  # fmt: skip
