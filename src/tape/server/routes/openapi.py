"""The routes as an OpenAPI 3.1 document."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

import msgspec

from tape.core import errors
from tape.server.http import errors as http_errors
from tape.server.http.problem import CONTENT_TYPE, Problem
from tape.server.http.route import Parameter, ResponseSpec, Route
from tape.server.routes.examples import IN_PATHS, body_example
from tape.server.routes.schemas import ProblemDetails

REFERENCE: Final = "#/components/schemas/{name}"
ALWAYS: Final = (400, 403, 405, 408, 414, 421, 431, 500)

Document = dict[str, Any]


def document(routes: Sequence[Route]) -> Document:
    """All routes with their parameters, bodies, responses and problems."""
    used = list(chain.from_iterable(map(_schemas, routes)))
    schemas, components = msgspec.json.schema_components([ProblemDetails, *used], ref_template=REFERENCE)
    known = {_key(kind): schema for kind, schema in zip(used, schemas[1:], strict=True)}
    paths: Document = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tape", "version": version("tape-bus"), "description": "A log-first event bus."},
        "tags": [{"name": tag} for tag in sorted({tag for route in routes for tag in route.tags})],
        "paths": paths,
        "components": {"schemas": components, "responses": _problem_responses(routes)},
    }


def _operation(route: Route, known: Mapping[str, Any]) -> Document:
    operation: Document = {"operationId": route.name, "summary": route.summary, "tags": route.tags}
    if route.parameters:
        operation["parameters"] = [_parameter(parameter, known) for parameter in route.parameters]
    if route.body is not None:
        content = {"application/json": {"schema": known[_key(route.body)], **body_example(route)}}
        operation["requestBody"] = {"required": route.is_body_required, "content": content}
    operation["responses"] = _responses(route, known)
    return operation


def _parameter(parameter: Parameter, known: Mapping[str, Any]) -> Document:
    has_example = parameter.location == "path" and parameter.name in IN_PATHS
    return {
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.location == "path" or parameter.is_required,
        "description": parameter.description,
        "schema": known[_key(parameter.schema)],
        **({"example": IN_PATHS[parameter.name]} if has_example else {}),
    }


def _responses(route: Route, known: Mapping[str, Any]) -> Document:
    response = route.response
    good = {"description": HTTPStatus(response.status).phrase, "content": _content(response, known)}
    bad = {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in _statuses(route)}
    unchanged = {"304": {"description": "Not Modified"}} if _has_etag(route) else {}
    return {str(response.status): good, **unchanged, **bad}


def _has_etag(route: Route) -> bool:
    """Whether a reader that has the same version already may get an answer without a body."""
    return route.method == "GET" and any(each.name == "If-None-Match" for each in route.parameters)


def _content(response: ResponseSpec, known: Mapping[str, Any]) -> Document:
    schema = {"type": "string"} if response.schema is None else known[_key(response.schema)]
    content = {response.content_type: {"schema": schema}}
    if response.alternative is not None:
        content[response.alternative[0]] = {"schema": known[_key(response.alternative[1])]}
    return content


def _statuses(route: Route) -> list[int]:
    return sorted({*route.problems, *ALWAYS})


def _problem_responses(routes: Sequence[Route]) -> Document:
    """A problem for each status, with the codes that it may have."""
    codes = _codes()
    return {f"Problem{status}": _problem(status, codes[status]) for status in sorted({*chain(*map(_statuses, routes))})}


def _problem(status: int, codes: Sequence[str]) -> Document:
    phrase, example = HTTPStatus(status).phrase, Problem(status=status, code=codes[0], detail="…", trace_id="0" * 32)
    content = {
        "schema": {"$ref": REFERENCE.format(name="ProblemDetails")},
        "example": msgspec.json.decode(example.body()),
    }
    return {"description": f"{phrase}; its code is {' or '.join(codes)}", "content": {CONTENT_TYPE: content}}


def _codes() -> Mapping[int, list[str]]:
    """The codes of problems by status, in alphabetical order."""
    found: dict[int, set[str]] = {500: {"internal"}}
    kinds = {kind for module in (errors, http_errors) for kind in vars(module).values() if isinstance(kind, type)}
    for kind in kinds:
        if issubclass(kind, errors.TapeError):
            found.setdefault(kind.http_status, set()).add(errors.code_of(kind))
    return {status: sorted(codes) for status, codes in found.items()}


def _schemas(route: Route) -> list[Any]:
    found = [*(parameter.schema for parameter in route.parameters), route.body, route.response.schema]
    if route.response.alternative is not None:
        found.append(route.response.alternative[1])
    return [schema for schema in found if schema is not None]


def _key(kind: Any) -> str:
    return repr(kind)
