"""`/openapi.json` and `/asyncapi.json`: the documents, made once from the routes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Answers, Handler, Route, answering
from tape.server.node import Node
from tape.server.routes import asyncapi, openapi

Document = Mapping[str, Any]


def routes(described: Sequence[Route]) -> tuple[Route, ...]:
    """The routes of the documents, which describe themselves too."""

    def about_http() -> Document:
        return openapi.document((*described, *documents))

    def about_streams() -> Document:
        return asyncapi.document([route for route in described if route.is_stream])

    documents = (
        _route("/openapi.json", "openapi", "This API as OpenAPI", about_http),
        _route("/asyncapi.json", "asyncapi", "Its streams as AsyncAPI", about_streams),
    )
    return documents


def _route(path: str, name: str, summary: str, make: Callable[[], Document]) -> Route:
    answers = Answers(shape=dict[str, Any])
    return Route(method="GET", path=path, name=name, summary=summary, handler=_serving(make), answers=answers)


def _serving(make: Callable[[], Document]) -> Handler:
    text = cache(lambda: msgspec.json.format(msgspec.json.encode(make()), indent=2))

    async def serve(request: Request, node: Node) -> Response:
        return Response(body=text())

    return answering(serve)
