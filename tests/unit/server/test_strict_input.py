"""Strict input: an unknown parameter or field is refused with the name that was probably meant, on every route."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest
from msgspec import Struct

from tape.compose import open_store, run_journal
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.runs.forks import Forks
from tape.server.app import App
from tape.server.http.guard import Guard
from tape.server.http.route import Route
from tape.server.http.router import Router
from tape.server.http.whole_number import whole_number
from tape.server.node import Node
from tape.server.routes.parameters import IDEMPOTENCY_KEY
from tape.server.routes.schemas import NewEvent, parse_body
from tape.server.routes.table import ROUTES


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        node = Node(journal=journal, runs=store.runs, forks=Forks(journal))
        transport = httpx.ASGITransport(app=App(node, Guard(), Router(ROUTES)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:7880") as client:
            yield client


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_route_refuses_a_parameter_that_it_does_not_have(http: httpx.AsyncClient, route: Route) -> None:
    known = [each.name for each in route.parameters if each.location == "query"]
    wrong = f"{known[0]}x" if known else "nothing"

    answer = await http.request(route.method, re.sub(r"{\w+}", "1", route.path), params={wrong: "1"})

    assert (answer.status_code, answer.json()["code"]) == (400, "usage_error")
    meant = f"you may mean {known[0]}" if known else "there are none"
    assert answer.json()["detail"] == f"there is no parameter {wrong}; {meant}"


async def test_a_stream_of_a_misspelt_run_is_not_a_stream_of_everything(http: httpx.AsyncClient) -> None:
    answer = await http.get("/events?runid=x")

    assert answer.status_code == 400
    assert answer.json()["detail"] == "there is no parameter runid; you may mean run_id"


async def test_without_a_near_miss_the_known_parameters_are_named(http: httpx.AsyncClient) -> None:
    answer = await http.get("/tasks?colour=red")

    assert answer.json()["detail"] == (
        "there is no parameter colour; there are cursor, limit, reaction_id, status, without_payloads"
    )


async def test_a_required_parameter_that_is_missing_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.get("/runs/-/compactable")

    assert (answer.status_code, answer.json()["detail"]) == (400, "the parameter before_ms is required")


@pytest.mark.parametrize("now_ms", ["null", "1.5", "-1", ""])
async def test_a_parameter_that_may_be_left_out_is_a_number_if_it_is_given(
    http: httpx.AsyncClient, now_ms: str
) -> None:
    answer = await http.get("/runs/-/to-recover", params={"now_ms": now_ms})

    assert answer.status_code == 400 and answer.json()["detail"].startswith("now_ms: ")


async def test_every_header_of_a_path_may_be_sent_from_another_origin(http: httpx.AsyncClient) -> None:
    answer = await http.options("/values/a/b")

    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert {"content-type", "if-match", "if-none-match", "idempotency-key"} <= set(allowed)
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"


class Inner(Struct, forbid_unknown_fields=True):
    depth: int = 0


class Outer(Struct, forbid_unknown_fields=True):
    run_id: str = ""
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"runid": "x"}, "the body has no field runid; you may mean run_id"),
        ({"inner": {"dept": 1}}, "the body has no field dept at inner; you may mean depth"),
        ({"inner": {"run_ids": 1}}, "the body has no field run_ids at inner; there is depth"),
    ],
)
def test_an_unknown_field_of_a_body_is_refused_with_the_near_miss(body: object, sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        parse_body(body, Outer)  # type: ignore[arg-type]


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    events = parse_body([{"payload": 1.0, "schema_version": 2.0}], NewEvent | list[NewEvent])

    assert [(type(event.payload), event.schema_version) for event in events] == [(float, 2)]


@pytest.mark.parametrize("version", [1.5, 1e300, -1.0, True, "2"])
def test_a_fraction_is_no_whole_number(version: JsonValue) -> None:
    with pytest.raises(UsageError, match="schema_version"):
        parse_body({"payload": 1, "schema_version": version}, NewEvent)


@pytest.mark.parametrize(("text", "number"), [("786.0", 786), ("7", 7), ("0", 0), ("-0", 0)])
def test_a_parameter_is_a_whole_number_as_json_schema_has_it(text: str, number: int) -> None:
    assert whole_number("limit", text, 0, 1000) == number


@pytest.mark.parametrize("text", ["-1", "1.5", "", "1001", "1e2", "1_0", " 1", "+1", "٣", "nan", "9" * 500])
def test_any_other_text_is_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(UsageError, match="limit is a whole number from 0 to 1,000"):
        whole_number("limit", text, 0, 1000)


def test_a_route_takes_the_key_of_a_request_only_where_the_request_has_one() -> None:
    taken = {route.name for route in ROUTES if any(each.name == IDEMPOTENCY_KEY.name for each in route.parameters)}
    derived = {"createSession", "appendEvent", "recordDispatchAttempt", "recordObligationAttempt"}

    assert taken & derived == set() and {"chargeBudget", "sendSignal"} <= taken
