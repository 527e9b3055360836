"""The routes of operations that have none of their own, and `/operations`, which lists all operations."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, NamedTuple, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct

from tape.core.caller import Caller
from tape.core.errors import NotFound, UsageError, quoted
from tape.core.ids import ID_GRAMMAR
from tape.core.page import ANSWER_BYTES
from tape.operations.catalogue import ALL, OPERATIONS
from tape.operations.fields import meaning_of
from tape.operations.operation import Access, Operation, PageRequest, Repeat
from tape.operations.rules import Id
from tape.operations.surfaces import (
    ALL_RUNS,
    CREATED,
    SECOND_ROUTES,
    HttpRoute,
    flat_fields,
    may_lack_run,
    path_fields,
    plural,
    row_of,
    surfaces_of,
)
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit, fit_beside
from tape.server.routes.parameters import IDEMPOTENCY_KEY, TRACEPARENT, key_of
from tape.server.routes.schemas import parse_body
from tape.wire.operation_json import Json, example_of, read_text, request_of, request_type, type_given
from tape.wire.result_json import result_type, write_result

READ_PROBLEMS: Final = (400, 404, 410, 503)
WRITE_PROBLEMS: Final = (400, 404, 409, 410, 413, 415, 429, 503)


RunOrAll = Annotated[str, Meta(pattern=f"^({ALL_RUNS}|{ID_GRAMMAR})$", description="a run, or - to name none")]


class Answer(NamedTuple):
    """A result as the fields of a JSON object, and the text of it."""

    fields: Json
    body: bytes


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
    return Response.json([row_of(each) for each in ALL])


def derived(others: Iterable[Route]) -> list[Route]:
    """A route for each operation that the other routes do not serve, and its other routes."""
    served = {(route.method, route.path) for route in others}
    found = ((each, surfaces_of(each).http) for each in OPERATIONS)
    also = ((each, SECOND_ROUTES.get(each.name)) for each in OPERATIONS)
    return [_route(each, http) for each, http in (*found, *also) if http is not None and http not in served]


async def call_operation(operation: Operation, http: HttpRoute, request: Request, node: Node) -> Response:
    """Runs an operation with the fields of the path, and of the query or the body."""
    given = {**read_text(operation, _named(operation, request)), **await _fields(operation, http, request)}
    answer = await _answer(operation, request_of(operation, given), Caller(trace=request.trace), node)
    if answer is None:
        raise NotFound(f"there is no {operation.noun} {quoted('/'.join(request.values.values()))}")
    if http in CREATED:
        place = CREATED[http].format(**answer.fields)
        return Response(status=201, body=answer.body, headers={"location": place})
    return Response(body=answer.body)


def _named(operation: Operation, request: Request) -> dict[str, str]:
    """The fields of the path, but for a run that is not named."""
    is_run_named = request.values.get("run_id") != ALL_RUNS or not may_lack_run(operation)
    return {name: text for name, text in request.values.items() if is_run_named or name != "run_id"}


async def _answer(operation: Operation, asked: Any, caller: Caller, node: Node) -> Answer | None:
    """A result that one answer carries; a page is read again if it is too long, which JSON in JSON may make it."""
    found = write_result(operation, await node.operations.call(asked, caller))
    if found is None:
        return None
    answer = Answer(found, msgspec.json.encode(found))
    lists = [name for name, value in found.items() if isinstance(value, list)]
    if len(answer.body) <= ANSWER_BYTES or not lists:
        return answer
    rows = found.pop(lists[-1])
    if not isinstance(asked, PageRequest):
        carried = {**found, lists[-1]: fit_beside(rows, found)}
        return Answer(carried, msgspec.json.encode(carried))
    fitting = len(fit(rows))
    return answer if fitting == len(rows) else await _answer(operation, replace(asked, limit=fitting), caller, node)


async def _fields(operation: Operation, http: HttpRoute, request: Request) -> dict[str, Any]:
    """The fields of the query, or of the body if the operation writes."""
    if operation.access is Access.READ:
        return read_text(operation, dict(_texts(operation, http, request)))
    body = parse_body(await request.json() if request.is_unread else {}, _body(operation, http))
    given = msgspec.structs.asdict(body)
    key = key_of(request) if _has_key(operation) else None
    if key is not None and given["key"] not in (UNSET, None, key):
        asked = f"the header has the key {quoted(key)} and the body {quoted(given['key'])}"
        raise UsageError(f"{asked}; give one of them")
    return given if key is None else {**given, "key": key}


def _has_key(operation: Operation) -> bool:
    """Whether a header may have the key of a request that is done once; others are repeated by a name or a number."""
    return operation.repeat is Repeat.KEYED and any(each.name == "key" for each in flat_fields(operation.request))


def _texts(operation: Operation, http: HttpRoute, request: Request) -> Iterator[tuple[str, str | list[str]]]:
    for each in _query(operation, http):
        is_list = get_origin(each.schema) is list
        text = request.parameters(each.name) if is_list else request.parameter(each.name)
        if text or text == "":
            yield each.name, text


def _body(operation: Operation, http: HttpRoute) -> type[Struct]:
    """The fields that are not in the path; a second route has a body of its own."""
    name = f"{http.method.title()}{operation.noun.title()}" if http == SECOND_ROUTES.get(operation.name) else ""
    return request_type(operation, frozenset(path_fields(http)), name)


def _route(operation: Operation, http: HttpRoute) -> Route:
    is_read, body = operation.access is Access.READ, _body(operation, http)
    name, keys = body.__name__, path_fields(http)
    return Route(
        method=http.method,
        path=http.path,
        name=f"{name[0].lower()}{name[1:]}",
        summary=operation.summary,
        handler=respond_with(partial(call_operation, operation, http)),
        parameters=(*_path(operation, http), *(_query(operation, http) if is_read else ()), *_headers(operation)),
        body=None if is_read or not body.__struct_fields__ else body,
        is_body_required=any(each.required for each in msgspec.structs.fields(body)),
        response=ResponseSpec(status=201 if http in CREATED else 200, schema=result_type(operation)),
        problems=READ_PROBLEMS if is_read else WRITE_PROBLEMS,
        tag=plural(operation.noun),
        example={name: value for name, value in example_of(operation).items() if name not in keys},
    )


def _path(operation: Operation, http: HttpRoute) -> list[Parameter]:
    types = {each.name: type_given(each.type) for each in msgspec.structs.fields(request_type(operation))}
    types["run_id"] = RunOrAll if may_lack_run(operation) else Id
    return [_parameter(operation, name, "path", types[name]) for name in path_fields(http)]


@cache
def _query(operation: Operation, http: HttpRoute) -> tuple[Parameter, ...]:
    """The fields of a request that only reads, but those in the path."""
    return tuple(
        _parameter(operation, each.name, "query", type_given(each.type), is_required=each.required)
        for each in msgspec.structs.fields(_body(operation, http))
    )


def _headers(operation: Operation) -> tuple[Parameter, ...]:
    return (IDEMPOTENCY_KEY, TRACEPARENT) if _has_key(operation) else (TRACEPARENT,)


def _parameter(
    operation: Operation, name: str, location: Literal["path", "query"], schema: Any, *, is_required: bool = True
) -> Parameter:
    about = meaning_of(operation.request, name)
    return Parameter(name=name, location=location, schema=schema, description=about, is_required=is_required)


LIST: Final = Route(
    method="GET", path="/operations", name="listOperations", summary="List all operations and where to call them",
    handler=respond_with(list_operations), response=ResponseSpec(schema=list[OperationRow]),
)  # fmt: skip
