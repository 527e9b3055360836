"""The routes as an OpenAPI 3.1 document."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

import msgspec

from tape.server.http.problem import CONTENT_TYPE
from tape.server.http.route import Parameter, ResponseSpec, Route
from tape.server.routes.schemas import ProblemDetails

REFERENCE: Final = "#/components/schemas/{name}"
ALWAYS: Final = (403, 405, 408, 414, 421, 431, 500)

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
        "paths": paths,
        "components": {"schemas": components, "responses": {"Problem": _problem_response()}},
    }


def _operation(route: Route, known: Mapping[str, Any]) -> Document:
    operation: Document = {"operationId": route.name, "summary": route.summary}
    if route.parameters:
        operation["parameters"] = [_parameter(parameter, known) for parameter in route.parameters]
    if route.body is not None:
        content = {"application/json": {"schema": known[_key(route.body)]}}
        operation["requestBody"] = {"required": route.is_body_required, "content": content}
    operation["responses"] = _responses(route, known)
    return operation


def _parameter(parameter: Parameter, known: Mapping[str, Any]) -> Document:
    return {
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.location == "path",
        "description": parameter.description,
        "schema": known[_key(parameter.schema)],
    }


def _responses(route: Route, known: Mapping[str, Any]) -> Document:
    response = route.response
    good = {"description": HTTPStatus(response.status).phrase, "content": _content(response, known)}
    bad = {str(status): {"$ref": "#/components/responses/Problem"} for status in sorted({*route.problems, *ALWAYS})}
    return {str(response.status): good, **bad}


def _content(response: ResponseSpec, known: Mapping[str, Any]) -> Document:
    schema = {"type": "string"} if response.schema is None else known[_key(response.schema)]
    content = {response.content_type: {"schema": schema}}
    if response.alternative is not None:
        content[response.alternative[0]] = {"schema": known[_key(response.alternative[1])]}
    return content


def _problem_response() -> Document:
    schema = {"$ref": REFERENCE.format(name="ProblemDetails")}
    return {"description": "A problem, by RFC 9457", "content": {CONTENT_TYPE: {"schema": schema}}}


def _schemas(route: Route) -> list[Any]:
    found = [*(parameter.schema for parameter in route.parameters), route.body, route.response.schema]
    if route.response.alternative is not None:
        found.append(route.response.alternative[1])
    return [schema for schema in found if schema is not None]


def _key(kind: Any) -> str:
    return repr(kind)
