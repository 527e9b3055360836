"""A route as a value: its request, its handler, and its description for the API documents."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from tape.server.http.request import Request, Send
from tape.server.http.response import Response
from tape.server.node import Node

Handler: TypeAlias = Callable[[Request, Node, Send], Awaitable[None]]
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
ABOUT_SERVER: Final = frozenset(
    {"health", "ready", "capabilities", "metrics", "operations", "openapi.json", "asyncapi.json"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    location: Literal["path", "query", "header"]
    schema: Any
    description: str
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSpec:
    """A successful response; `alternative` is a second media type and its schema."""

    status: int = 200
    schema: Any = None
    content_type: str = "application/json"
    alternative: tuple[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation; `problems` are the error statuses it may return, `example` is one of its body.

    The documents list it under its `tag`, or else under the first segment of its path.
    """

    method: Method
    path: str
    name: str
    summary: str
    handler: Handler
    response: ResponseSpec
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    is_body_required: bool = True
    problems: tuple[int, ...] = ()
    is_stream: bool = False
    tag: str = ""
    example: Any = None
    query: Mapping[str, bool] = field(init=False)

    def __post_init__(self) -> None:
        """Sets `query`: the parameters of the query, and whether they are required."""
        query = {each.name: each.is_required for each in self.parameters if each.location == "query"}
        object.__setattr__(self, "query", query)

    @property
    def tags(self) -> list[str]:
        first = self.path.split("/")[1]
        return [self.tag or ("server" if first in ABOUT_SERVER else first)]


def respond_with(handler: Callable[[Request, Node], Awaitable[Response]]) -> Handler:
    """Wraps a function that returns a response."""

    async def handle(request: Request, node: Node, send: Send) -> None:
        await (await handler(request, node)).send(send)

    return handle
