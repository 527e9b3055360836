"""`/openapi.json` and `/asyncapi.json`, generated once from the routes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Handler, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes import asyncapi, openapi

Document = Mapping[str, Any]


def routes(described: Sequence[Route]) -> tuple[Route, ...]:
    """The routes of both documents; OpenAPI describes them too."""

    def openapi_document() -> Document:
        return openapi.document((*described, *documents))

    def asyncapi_document() -> Document:
        return asyncapi.document([route for route in described if route.is_stream])

    documents = (
        _route("/openapi.json", "openapi", "This API as OpenAPI", openapi_document),
        _route("/asyncapi.json", "asyncapi", "Its streams as AsyncAPI", asyncapi_document),
    )
    return documents


def _route(path: str, name: str, summary: str, make: Callable[[], Document]) -> Route:
    response = ResponseSpec(schema=dict[str, Any])
    return Route(method="GET", path=path, name=name, summary=summary, handler=_serve_document(make), response=response)


def _serve_document(make: Callable[[], Document]) -> Handler:
    text = cache(lambda: msgspec.json.format(msgspec.json.encode(make()), indent=2))

    async def serve(request: Request, node: Node) -> Response:
        return Response(body=text())

    return respond_with(serve)
