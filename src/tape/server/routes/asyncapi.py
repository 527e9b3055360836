"""The streams as an AsyncAPI 3.0 document: which frames can come, and what they hold."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import msgspec

from tape.server.http.route import Parameter, Route
from tape.wire.frames import SYNTHETIC, Delivered

REFERENCE: Final = "#/components/schemas/{name}"
ENTRY: Final = "entry"
WHOLE: Final = frozenset({ENTRY, "run_end"})  # their shapes are the whole of a frame's data

Document = dict[str, Any]


def document(routes: Sequence[Route]) -> Document:
    """Every stream, and every frame it can carry."""
    shapes = [Delivered, *SYNTHETIC.values()]
    schemas, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    names = (ENTRY, *SYNTHETIC)
    messages = {name: _message(name, schema) for name, schema in zip(names, schemas, strict=True)}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Tape's streams", "version": version("tape-bus")},
        "channels": {route.name: _channel(route, names) for route in routes},
        "operations": {route.name: _operation(route) for route in routes},
        "components": {"messages": messages, "schemas": components},
    }


def _channel(route: Route, names: Sequence[str]) -> Document:
    parameters = [parameter for parameter in route.parameters if parameter.place == "path"]
    channel: Document = {
        "address": route.path,
        "description": route.summary,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"http": {"bindingVersion": "0.3.0"}},
    }
    if parameters:
        channel["parameters"] = {parameter.name: {"description": parameter.about} for parameter in parameters}
    return channel


def _operation(route: Route) -> Document:
    query = [parameter for parameter in route.parameters if parameter.place == "query"]
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{route.name}"},
        "summary": route.summary,
        "bindings": {"http": {"method": route.method, "query": _query(query), "bindingVersion": "0.3.0"}},
    }


def _query(parameters: Sequence[Parameter]) -> Document:
    properties = {parameter.name: msgspec.json.schema(parameter.shape) for parameter in parameters}
    return {"type": "object", "properties": properties}


def _message(name: str, schema: Any) -> Document:
    """A frame's data: an entry and the end of a run as they are, any other frame in the same kind of envelope."""
    if name in WHOLE:
        return {"name": name, "contentType": "application/json", "payload": schema}
    properties = {"v": {"const": 1}, "type": {"const": name}, "data": schema}
    payload = {"type": "object", "required": ["v", "type", "data"], "properties": properties}
    return {"name": name, "contentType": "application/json", "payload": payload}
