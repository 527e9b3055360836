"""`/outbox` and its gauges, through real sockets, in Postgres and in a file."""

from pathlib import Path
from uuid import uuid4

import anyio
import httpx
import pytest

from tape.outbox import migrate
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event
from tests.server.conftest import Start
from tests.server.server import TapeServer


@pytest.fixture(params=["sqlite", "postgres"])
def business(request: pytest.FixtureRequest) -> BusinessDatabase:
    if request.param == "postgres":
        return BusinessDatabase("postgres", str(request.getfixturevalue("postgres_url")))
    return BusinessDatabase("sqlite", f"sqlite:///{request.getfixturevalue('tmp_path')}/tape.db")


@pytest.fixture
def server(start: Start, business: BusinessDatabase) -> TapeServer:
    """A server beside an outbox with one row that was handled, one that could not be, and one that waits."""
    server = start(business.url)
    anyio.run(filled, business)
    return server


async def filled(business: BusinessDatabase) -> None:
    await migrate(business.url)
    await business.run("CREATE TABLE orders (n INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')")
    await business.publish(make_event(1), make_event(2))
    seen = RecordingHandler(lambda event: ValueError("no such account") if event.payload["n"] == 2 else None)
    async with business.listening({"orders.seen": seen}):
        await business.wait_until("delivered", 1)
        await business.wait_until("failed", 1)
    await business.publish(make_event(3))


def test_rows_are_listed_and_the_dead_ones_apart(server: TapeServer) -> None:
    with server.client() as http:
        rows = http.get("/outbox", params={"limit": 10}).json()["rows"]
        (failed,) = http.get("/outbox", params={"status": "failed"}).json()["rows"]
        shown = http.get(f"/outbox/{failed['event_id']}").json()

    assert [(row["payload"]["n"], row["status"]) for row in rows] == [(3, "pending"), (2, "failed"), (1, "delivered")]
    assert "no such account" in failed["last_error"]
    assert [(each["handler_name"], each["status"]) for each in shown["deliveries"]] == [("orders.seen", "failed")]


def test_rows_are_listed_page_by_page(server: TapeServer) -> None:
    with server.client() as http:
        first = http.get("/outbox", params={"limit": 2}).json()
        rest = http.get("/outbox", params={"limit": 2, "cursor": first["next_cursor"]}).json()
        foreign = http.get("/outbox", params={"status": "failed", "cursor": first["next_cursor"]})

    assert [row["payload"]["n"] for row in (*first["rows"], *rest["rows"])] == [3, 2, 1]
    assert rest["next_cursor"] == ""
    assert (foreign.status_code, foreign.json()["code"]) == (400, "invalid_cursor")


def test_large_rows_come_page_by_page(server: TapeServer, business: BusinessDatabase) -> None:
    anyio.run(business.publish, *(make_event(n, payload={"n": n, "text": "x" * 900_000}) for n in range(4, 10)))
    with server.client() as http:
        first = http.get("/outbox")
        second = http.get("/outbox", params={"cursor": first.json()["next_cursor"]})

    assert max(len(first.content), len(second.content)) <= 4 << 20 and second.json()["next_cursor"] == ""
    found = [row["payload"]["n"] for answer in (first, second) for row in answer.json()["rows"]]
    assert found == [9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_a_dead_row_is_pending_again_after_a_replay(server: TapeServer) -> None:
    with server.client() as http:
        (failed,) = http.get("/outbox", params={"status": "failed"}).json()["rows"]
        replayed = http.post("/outbox/replay", json={"event_ids": [failed["event_id"]], "replayed_by": "ann"}).json()
        row = http.get(f"/outbox/{failed['event_id']}").json()["row"]
        again = http.post("/outbox/replay", json={"event_type": "orders.placed"}).json()

    assert (replayed, again) == ({"replayed": 1}, {"replayed": 0})
    assert (row["status"], row["attempts"], row["failure_history"][0]["replayed_by"]) == ("pending", 0, "ann")


def test_stats_and_gauges_agree(server: TapeServer) -> None:
    with server.client() as http:
        stats = http.get("/outbox/stats").json()
        lines = dict(line.rsplit(" ", 1) for line in http.get("/metrics").text.splitlines() if line[0] != "#")

    assert (stats["pending"], stats["in_flight"], stats["failed"], stats["advice"]) == (1, 0, 1, [])
    assert [lines[f"tape_outbox_{name}"] for name in ("up", "pending", "in_flight", "failed")] == ["1", "1", "0", "1"]
    assert 0 < float(lines["tape_outbox_oldest_seconds"]) < 60
    assert 0 < float(lines["tape_outbox_ack_p50_seconds"]) <= float(lines["tape_outbox_ack_p99_seconds"])
    assert float(lines["tape_outbox_notify_queue_usage"]) < 0.25


def test_what_cannot_be_meant_is_refused(server: TapeServer) -> None:
    asked = {"event_ids": [str(uuid4())], "event_type": "orders.placed"}
    with server.client() as http:
        answers: list[httpx.Response] = [
            http.get("/outbox", params={"status": "lost"}),
            http.get("/outbox", params={"limit": 0}),
            http.get("/outbox/17"),
            http.post("/outbox/replay", json=asked),
            http.get(f"/outbox/{uuid4()}"),
        ]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 400, 404]
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_server_without_an_outbox_reports_it(store: str, start: Start, tmp_path: Path) -> None:
    server = start("memory://" if store == "memory" else f"sqlite:///{tmp_path / 'tape.db'}")
    with server.client() as http:
        answer = http.get("/outbox")
        gauges = http.get("/metrics").text

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "\ntape_outbox_up 0\n" in gauges
