"""The streams as an AsyncAPI 3.0 document, with the schemas of all frames."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import msgspec

from tape.server.http.route import Parameter, Route
from tape.wire.frames import SYNTHETIC, Delivered

REFERENCE: Final = "#/components/schemas/{name}"
ENTRY: Final = "entry"
WITHOUT_ENVELOPE: Final = frozenset({ENTRY, "run_end"})  # their schemas describe all of a frame's data

Document = dict[str, Any]


def document(routes: Sequence[Route]) -> Document:
    """All streams and all frames they can send."""
    frames = [Delivered, *SYNTHETIC.values()]
    schemas, components = msgspec.json.schema_components(frames, ref_template=REFERENCE)
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
    parameters = [parameter for parameter in route.parameters if parameter.location == "path"]
    channel: Document = {
        "address": route.path,
        "description": route.summary,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"http": {"bindingVersion": "0.3.0"}},
    }
    if parameters:
        channel["parameters"] = {parameter.name: {"description": parameter.description} for parameter in parameters}
    return channel


def _operation(route: Route) -> Document:
    query = [parameter for parameter in route.parameters if parameter.location == "query"]
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{route.name}"},
        "summary": route.summary,
        "bindings": {"http": {"method": route.method, "query": _query(query), "bindingVersion": "0.3.0"}},
    }


def _query(parameters: Sequence[Parameter]) -> Document:
    properties = {parameter.name: msgspec.json.schema(parameter.schema) for parameter in parameters}
    return {"type": "object", "properties": properties}


def _message(name: str, schema: Any) -> Document:
    """The data of a frame; all but an entry and the end of a run have an envelope."""
    if name in WITHOUT_ENVELOPE:
        return {"name": name, "contentType": "application/json", "payload": schema}
    properties = {"v": {"const": 1}, "type": {"const": name}, "data": schema}
    payload = {"type": "object", "required": ["v", "type", "data"], "properties": properties}
    return {"name": name, "contentType": "application/json", "payload": payload}
