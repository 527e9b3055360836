"""Fuzz target: a request as a client may write it, answered by the whole application over a store in memory."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tape.compose import ledgers_of, open_store, run_journal
from tape.core.errors import TapeError
from tape.operations.handlers import Handlers
from tape.runs.forks import Forks
from tape.runs.journal_runs import JournalRuns
from tape.runs.run_events import RunEvents
from tape.server.app import App
from tape.server.http.guard import Guard
from tape.server.http.problem import CONTENT_TYPE
from tape.server.http.request import Message, Request, Send
from tape.server.http.router import Router
from tape.server.node import Node
from tape.server.routes.openapi import document
from tape.server.routes.table import ROUTES
from tape.server.sse.options import StreamRequest
from tests.fuzz.inputs import Target

REQUESTS_PER_STORE: Final = 500
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
OF_NO_ROUTE: Final = frozenset((204, 400, 403, 404, 405, 421))
UNREAD: Final = b"/lake", b"/openapi.json", b"/asyncapi.json"  # documents take long, and a lake needs a folder
PATHS: Final = document(ROUTES)["paths"]


async def ask_for_stream(request: Request, node: Node, send: Send) -> None:
    """Stands for a stream, which need not end: it only reads what is asked for."""
    StreamRequest.of(request)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


ROUTER: Final = Router([replace(route, handler=ask_for_stream) if route.is_stream else route for route in ROUTES])


@contextmanager
def http_request() -> Iterator[Target]:
    """Every request gets one whole answer that the documents name, and none is an internal error."""
    with start_blocking_portal() as portal, ExitStack() as opened:
        server = Server(portal, opened)

        def ask(data: bytes) -> None:
            head, _, body = data.partition(b"\n\n")
            first, *lines = head.split(b"\n")
            method, _, target = first.decode("latin-1").partition(" ")
            path, _, query = target.encode("latin-1").partition(b"?")
            if method in METHODS and not path.startswith(UNREAD):
                headers = headers_of(lines, body)
                scope = {"method": method, "raw_path": path, "query_string": query, "headers": headers}
                check_answer(server.ask(scope, body), method, path)

        yield ask


def headers_of(lines: list[bytes], body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of a request, as a parser of HTTP leaves them; what nearly all requests have is added."""
    pairs = [line.partition(b":") for line in lines]
    given = [(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon]
    usual = {b"host": b"localhost", b"content-type": b"application/json", b"content-length": b"%d" % len(body)}
    missing = sorted(usual.keys() - {name for name, _ in given})
    return given + [(name, usual[name]) for name in missing if body or name == b"host"]


class Server:
    """The application over a store in memory, which is made anew from time to time, so that it stays small."""

    def __init__(self, portal: BlockingPortal, opened: ExitStack) -> None:
        self._portal = portal
        self._opened = opened
        self._app: App | None = None
        self._asked = 0

    def ask(self, scope: dict[str, Any], body: bytes) -> list[Message]:
        if self._app is None or self._asked >= REQUESTS_PER_STORE:
            self._opened.close()
            self._app, self._asked = self._opened.enter_context(self._portal.wrap_async_context_manager(app())), 0
        self._asked += 1
        return self._portal.call(sent, self._app, scope, body)


@asynccontextmanager
async def app() -> AsyncIterator[App]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        ledgers = ledgers_of(store, journal)
        operations = Handlers(ledgers, JournalRuns(journal, store.runs, ledgers), RunEvents(journal, store.runs))
        node = Node(journal=journal, runs=store.runs, forks=Forks(journal), operations=operations, ledgers=ledgers)
        yield App(node, Guard(), ROUTER)


async def sent(app: App, scope: dict[str, Any], body: bytes) -> list[Message]:
    """What the application answers."""
    messages: list[Message] = []
    parts = iter([{"type": "http.request", "body": body}])

    async def receive() -> Message:
        return next(parts, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return messages


def check_answer(messages: list[Message], method: str, path: bytes) -> None:
    start, *rest = messages
    status, kind = start["status"], dict(start["headers"]).get(b"content-type", b"").decode()
    content = b"".join(each.get("body", b"") for each in rest)
    assert status in documented(method, path), (status, content)
    assert rest and not rest[-1].get("more_body", False)
    if method == "HEAD":
        return
    if status >= 400:
        assert kind == CONTENT_TYPE and json.loads(content)["status"] == status
    elif kind == "application/json" and content:
        json.loads(content)


def documented(method: str, path: bytes) -> frozenset[int]:
    """The statuses that the OpenAPI document has for a path, without that of an internal error."""
    try:
        route, _ = ROUTER.find(method, path)
    except TapeError:
        return OF_NO_ROUTE
    known = PATHS[route.path][route.method.lower()]["responses"]
    return frozenset(map(int, known)) - {500}
