"""The ASGI application: checks the origin, finds the route, calls its handler, and answers errors as problems."""

import traceback
from typing import Final

from tape.core.errors import TapeError
from tape.server.http.errors import ClientDisconnected
from tape.server.http.guard import Guard
from tape.server.http.problem import Problem
from tape.server.http.request import Receive, Request, Scope, Send
from tape.server.http.response import Response
from tape.server.http.response_sender import ResponseSender
from tape.server.http.router import Router, methods
from tape.server.node import Node
from tape.telemetry import log

PREFLIGHT_S: Final = 600


class App:
    """Answers the requests of one server; every error is a problem with a code and a trace id."""

    def __init__(self, node: Node, guard: Guard, router: Router) -> None:
        self._node = node
        self._guard = guard
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = ResponseSender(request, send)
        try:
            await self._answer(request, answer)
        except ClientDisconnected:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a problem or aborts the connection
            await self._fail(request, answer, error)
        finally:
            self._node.meters.requests.add(1, request.method, answer.route, answer.status)

    async def _answer(self, request: Request, answer: ResponseSender) -> None:
        answer.origin = self._guard.check(request.raw_headers)
        if request.method == "OPTIONS":
            await self._preflight(request).send(answer)
            return
        route, request.values = self._router.find(request.method, request.raw_path)
        answer.route = route.path
        request.check_parameters(route.query)
        await route.handler(request, self._node, answer)

    def _preflight(self, request: Request) -> Response:
        """The answer to a CORS preflight of an allowed origin; credentials are never allowed."""
        routes = self._router.at(request.raw_path)
        allowed = ", ".join(methods(routes))
        given = {each.name.lower() for route in routes for each in route.parameters if each.location == "header"}
        headers = {
            "allow": allowed,
            "access-control-allow-methods": allowed,
            "access-control-allow-headers": ", ".join(sorted({"content-type", *given})),
            "access-control-max-age": str(PREFLIGHT_S),
        }
        return Response.empty(headers)

    async def _fail(self, request: Request, answer: ResponseSender, error: Exception) -> None:
        problem = Problem.of(error, request.trace_id)
        if problem.status >= 500:
            _log_problem(problem, answer.route, error)
        if answer.is_started:
            request.connection.transport.abort()  # a truncated answer must not look complete
            return
        await Response.of_problem(problem).send(answer)


def _log_problem(problem: Problem, route: str, error: Exception) -> None:
    """Logs what the caller does not see: the store's error or the stack, but no values."""
    facts: dict[str, object] = {"trace_id": problem.trace_id, "code": problem.code, "route": route}
    if isinstance(error, TapeError):
        log.warning("request.refused", **facts, reason=str(error))
    else:
        frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        log.error("request.failed", **facts, error=type(error).__name__, frames=frames)
