"""A route as a value: how it is asked, what answers, and what is said about it in the documents."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tape.server.http.request import Request, Send
from tape.server.http.response import Response
from tape.server.node import Node

Handler: TypeAlias = Callable[[Request, Node, Send], Awaitable[None]]
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something that may be said in the path, the query or a header."""

    name: str
    place: Literal["path", "query", "header"]
    shape: Any
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a route answers when all is well; a second shape may be asked for by another media type."""

    status: int = 200
    shape: Any = None
    content_type: str = "application/json"
    other: tuple[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One thing that can be asked; what can go wrong is told by status."""

    method: Method
    path: str
    name: str
    summary: str
    handler: Handler
    answers: Answers
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    is_body_required: bool = True
    problems: tuple[int, ...] = ()
    is_stream: bool = False


def answering(handler: Callable[[Request, Node], Awaitable[Response]]) -> Handler:
    """A handler that gives a whole response, as one that sends it."""

    async def answer(request: Request, node: Node, send: Send) -> None:
        await (await handler(request, node)).send(send)

    return answer
