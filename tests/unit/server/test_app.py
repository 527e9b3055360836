"""The application: the origin is checked first, and every error becomes a problem with a trace id."""

import json
import logging
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

from tape.compose import open_store, run_journal
from tape.runs.forks import Forks
from tape.server.app import App
from tape.server.http.errors import RequestTimeout
from tape.server.http.guard import Guard
from tape.server.http.request import Message, Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.http.router import Router
from tape.server.node import Node
from tape.server.routes.table import ROUTES
from tape.telemetry import JsonLines
from tests.deadlines import DEADLINE_S

SECRET = "hunter2 in /srv/tape.db"


async def broken(request: Request, node: Node) -> Response:
    raise RuntimeError(SECRET)


async def nothing_comes() -> Message:
    await anyio.sleep_forever()
    return {}


async def fine(request: Request, node: Node) -> Response:
    return Response.json({"word": request.parameter("word")})


WORD = Parameter(name="word", location="query", schema=str, description="A word.")


def route(path: str, handler: object, *parameters: Parameter) -> Route:
    return Route(
        method="GET", path=path, name=path, summary=path, handler=respond_with(handler),  # type: ignore[arg-type]
        response=ResponseSpec(schema=dict), parameters=parameters,
    )  # fmt: skip


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        yield Node(journal=journal, runs=store.runs, forks=Forks(journal))


@pytest.fixture
async def http(node: Node) -> AsyncIterator[httpx.AsyncClient]:
    app = App(node, Guard(), Router([route("/broken", broken), route("/fine", fine, WORD)]))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:7880") as client:
        yield client


async def test_a_handler_that_crashes_is_an_internal_problem_and_no_more(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await http.get("/broken", headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})

    (record,) = [record for record in caplog.records if record.name == "tape"]
    line = json.loads(JsonLines().format(record))
    assert (answer.status_code, answer.json()["code"], answer.json()["trace_id"]) == (500, "internal", "a" * 32)
    assert (line["event"], line["error"], line["trace_id"]) == ("request.failed", "RuntimeError", "a" * 32)
    assert SECRET not in answer.text + json.dumps(line)


async def test_a_log_event_is_one_line_with_any_text() -> None:
    record = logging.LogRecord("tape", logging.WARNING, "", 0, "request.refused", None, None)
    record.facts = {"reason": "\x1b[2J\r\n\u202e\u200b"}

    line = JsonLines().format(record)

    assert line.isascii() and line.isprintable()


async def test_the_origin_is_checked_before_the_route(http: httpx.AsyncClient) -> None:
    answers = [await http.get(path, headers={"host": "evil.example"}) for path in ("/fine", "/broken", "/nowhere")]

    assert [answer.status_code for answer in answers] == [421, 421, 421]


async def test_a_parameter_that_is_given_twice_is_refused(http: httpx.AsyncClient) -> None:
    assert (await http.get("/fine?word=a")).json() == {"word": "a"}
    assert (await http.get("/fine?word=a&word=b")).status_code == 400


@pytest.mark.parametrize("query", ["word=%ff", "word=" + "&".join(["x=1"] * 70)])
async def test_an_unreadable_query_is_refused(http: httpx.AsyncClient, query: str) -> None:
    assert (await http.get(f"/fine?{query}")).status_code == 400


async def test_every_answer_is_counted_by_route_and_status(http: httpx.AsyncClient, node: Node) -> None:
    for path in ("/fine", "/fine", "/broken", "/nowhere"):
        await http.get(path)

    assert node.meters.requests.values == {
        ("GET", "/fine", "200"): 2,
        ("GET", "/broken", "500"): 1,
        ("GET", "", "404"): 1,
    }


async def test_a_body_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tape.server.http.request.BODY_S", 0.01)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"method": "POST", "raw_path": b"/", "query_string": b"", "headers": headers}

    with anyio.fail_after(DEADLINE_S), pytest.raises(RequestTimeout):
        await Request(scope, nothing_comes).json()


@pytest.mark.parametrize("path", ["/events", "/events?run_id=unknown", "/session/unknown/events"])
async def test_a_draining_server_refuses_new_streams(node: Node, path: str) -> None:
    transport = httpx.ASGITransport(app=App(node, Guard(), Router(ROUTES)))
    node.draining.set()

    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:7880") as client:
        answer = await client.get(path)

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "shutting down" in answer.json()["reason"] and answer.headers["retry-after"]
