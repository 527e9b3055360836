"""The routes as an OpenAPI 3.1 document."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

import msgspec

from tape.server.http.problem import CONTENT_TYPE
from tape.server.http.route import Answers, Parameter, Route
from tape.server.routes.shapes import ProblemDetails

REFERENCE: Final = "#/components/schemas/{name}"
ALWAYS: Final = (403, 405, 408, 414, 421, 431, 500)

Document = dict[str, Any]


def document(routes: Sequence[Route]) -> Document:
    """Everything that can be asked over HTTP."""
    shapes = list(chain.from_iterable(map(_shapes, routes)))
    schemas, components = msgspec.json.schema_components([ProblemDetails, *shapes], ref_template=REFERENCE)
    known = {_key(shape): schema for shape, schema in zip(shapes, schemas[1:], strict=True)}
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
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.about,
        "schema": known[_key(parameter.shape)],
    }


def _responses(route: Route, known: Mapping[str, Any]) -> Document:
    answers = route.answers
    good = {"description": HTTPStatus(answers.status).phrase, "content": _content(answers, known)}
    bad = {str(status): {"$ref": "#/components/responses/Problem"} for status in sorted({*route.problems, *ALWAYS})}
    return {str(answers.status): good, **bad}


def _content(answers: Answers, known: Mapping[str, Any]) -> Document:
    schema = {"type": "string"} if answers.shape is None else known[_key(answers.shape)]
    content = {answers.content_type: {"schema": schema}}
    if answers.other is not None:
        content[answers.other[0]] = {"schema": known[_key(answers.other[1])]}
    return content


def _problem_response() -> Document:
    schema = {"$ref": REFERENCE.format(name="ProblemDetails")}
    return {"description": "What is wrong, by RFC 9457", "content": {CONTENT_TYPE: {"schema": schema}}}


def _shapes(route: Route) -> list[Any]:
    found = [*(parameter.shape for parameter in route.parameters), route.body, route.answers.shape]
    if route.answers.other is not None:
        found.append(route.answers.other[1])
    return [shape for shape in found if shape is not None]


def _key(shape: Any) -> str:
    return repr(shape)
