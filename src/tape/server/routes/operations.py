"""The routes of operations that have none of their own, and `/operations`, which lists all operations."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal, get_origin

import msgspec
from msgspec import Meta, Struct

from tape.core.caller import Caller
from tape.core.errors import NotFound, quoted
from tape.core.ids import ID_GRAMMAR
from tape.operations.catalogue import OPERATIONS
from tape.operations.fields import meaning_of
from tape.operations.operation import Access, Operation
from tape.operations.surfaces import ALL_RUNS, PLURALS, HttpRoute, key_fields, may_be_all_runs, row_of, surfaces_of
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.parameters import TRACEPARENT
from tape.server.routes.schemas import parse_body
from tape.wire.operation_json import (
    example_of,
    read_text,
    request_of,
    request_type,
    result_type,
    type_given,
    write_result,
)

READ_PROBLEMS: Final = (400, 404, 503)
WRITE_PROBLEMS: Final = (400, 404, 409, 413, 415, 429, 503)


RunOrAll = Annotated[str, Meta(pattern=f"^({ALL_RUNS}|{ID_GRAMMAR})$", description="a run, or - for all runs")]


class OperationRow(Struct, frozen=True, kw_only=True):
    """An operation and where it can be called; `except` says where it cannot, and why."""

    name: str
    summary: str
    verb: str
    scope: str
    kind: str
    repeat: str
    http: dict[str, str] | None
    grpc: str | None
    cli: str | None
    sdk: str | None
    missing: dict[str, str] = msgspec.field(name="except")


async def list_operations(request: Request, node: Node) -> Response:
    return Response.json([row_of(each) for each in OPERATIONS])


def derived(others: Iterable[Route]) -> list[Route]:
    """A route for each operation that the other routes do not serve."""
    served = {(route.method, route.path) for route in others}
    found = ((each, surfaces_of(each).http) for each in OPERATIONS)
    return [_route(each, http) for each, http in found if http is not None and http not in served]


async def call_operation(operation: Operation, request: Request, node: Node) -> Response:
    """Runs an operation with the fields of the path, and of the query or the body."""
    named = {name: text for name, text in request.values.items() if text != ALL_RUNS or not may_be_all_runs(operation)}
    given = {**read_text(operation, named), **await _fields(operation, request)}
    result = await node.operations.call(request_of(operation, given), Caller(trace=request.trace))
    found = write_result(operation, result)
    if found is None:
        raise NotFound(f"there is no {operation.noun} {quoted('/'.join(request.values.values()))}")
    return Response.json(found)


async def _fields(operation: Operation, request: Request) -> dict[str, Any]:
    """The fields of the query, or of the body if the operation writes."""
    if operation.access is Access.READ:
        return read_text(operation, dict(_texts(operation, request)))
    kind = request_type(operation, frozenset(key_fields(operation)))
    return msgspec.structs.asdict(parse_body(await request.json() if request.is_unread else {}, kind))


def _texts(operation: Operation, request: Request) -> Iterator[tuple[str, str | list[str]]]:
    for each in _query(operation):
        is_list = get_origin(each.schema) is list
        text = request.parameters(each.name) if is_list else request.parameter(each.name)
        if text or text == "":
            yield each.name, text


def _route(operation: Operation, http: HttpRoute) -> Route:
    name, is_read = operation.request.__name__, operation.access is Access.READ
    body = request_type(operation, frozenset(key_fields(operation)))
    return Route(
        method=http.method,
        path=http.path,
        name=f"{name[0].lower()}{name[1:]}",
        summary=operation.summary,
        handler=respond_with(partial(call_operation, operation)),
        parameters=(*_path(operation), *(_query(operation) if is_read else ()), TRACEPARENT),
        body=None if is_read else body,
        is_body_required=any(each.required for each in msgspec.structs.fields(body)),
        response=ResponseSpec(schema=result_type(operation)),
        problems=READ_PROBLEMS if is_read else WRITE_PROBLEMS,
        tag=PLURALS.get(operation.noun, f"{operation.noun}s"),
        example=_example(operation),
    )


def _example(operation: Operation) -> dict[str, Any]:
    """An example of the body: what is required and not in the path."""
    keys = key_fields(operation)
    return {name: value for name, value in example_of(operation).items() if name not in keys}


def _path(operation: Operation) -> list[Parameter]:
    types = {each.name: each.type for each in msgspec.structs.fields(request_type(operation))}
    if may_be_all_runs(operation):
        types["run_id"] = RunOrAll
    return [_parameter(operation, name, "path", types[name]) for name in key_fields(operation)]


def _query(operation: Operation) -> list[Parameter]:
    """The fields of a request that only reads, but those in the path."""
    return [
        _parameter(operation, each.name, "query", type_given(each.type), is_required=each.required)
        for each in msgspec.structs.fields(request_type(operation, frozenset(key_fields(operation))))
    ]


def _parameter(
    operation: Operation, name: str, location: Literal["path", "query"], schema: Any, *, is_required: bool = True
) -> Parameter:
    about = meaning_of(operation.request, name)
    return Parameter(name=name, location=location, schema=schema, description=about, is_required=is_required)


LIST: Final = Route(
    method="GET", path="/operations", name="listOperations", summary="List all operations and where to call them",
    handler=respond_with(list_operations), response=ResponseSpec(schema=list[OperationRow]),
)  # fmt: skip
