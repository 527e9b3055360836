"""`GET /runs/{id}/events`: pages of entries as JSON, on every store; and the bodies of entries."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.reading import ids, open_stream, publish
from tests.server.test_runs import append, code


def page(http: httpx.Client, run_id: str, **query: Any) -> Any:
    answer = http.get(f"/runs/{run_id}/events", params=query)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def test_a_run_is_read_page_by_page_to_its_end(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, [{"payload": {"n": n}, "type": "step"} for n in range(1, 4)])
    first = page(http, run_id, limit=2)
    http.post(f"/runs/{run_id}/close")
    second = page(http, run_id, after=first["next"], limit=2)

    assert ([entry["seq"] for entry in first["entries"]], first["next"], first["head"]) == ([1, 2], 2, 3)
    assert [entry["data"] for entry in first["entries"]] == [{"n": 1}, {"n": 2}]
    assert (first["closed"], second["closed"]) == (False, True)
    assert ([entry["seq"] for entry in second["entries"]], second["next"], second["head"]) == ([3], 3, 3)


def test_an_entry_is_what_a_stream_sends(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": {"x": -0.0}, "subject": "/a/b"}, X_Client_Id="tab-1")
    http.post(f"/runs/{run_id}/close")

    body = http.get(f"/runs/{run_id}/events").text
    streamed = http.get("/events", params={"run_id": run_id}).text

    assert body.partition('"entries":[')[2].partition('],"next"')[0] in streamed
    assert '"data":{"x":-0.0}' in body and '"originatorClientId":"tab-1"' in body


@pytest.mark.parametrize(
    "query",
    [
        {"after": "-1"}, {"after": "x"}, {"after": "9"}, {"limit": "0"}, {"limit": "1001"}, {"wait": "61"},
        {"wait": "soon"}, {"wait": "nan"}, {"epoch": "1", "after": "1"}, {"from_seq": "1"},
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_is_refused(http: httpx.Client, run_id: str, query: dict[str, str]) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": 1})

    assert http.get(f"/runs/{run_id}/events", params=query).status_code == httpx.codes.BAD_REQUEST


def test_events_of_an_unknown_run_are_not_found(http: httpx.Client) -> None:
    answers = [http.get(path) for path in ("/runs/none/events", "/runs/none/events?after=3", "/runs/none/events/1")]

    assert [code(answer) for answer in answers] == [(404, "run_not_found")] * 3


@pytest.mark.parametrize("comes", ["entry", "end"])
def test_a_wait_ends_with_the_first_entry_or_with_the_run(http: httpx.Client, run_id: str, comes: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": 1})

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(page, http, run_id, after=1, wait=60)
        append(http, run_id, {"payload": 2}) if comes == "entry" else http.post(f"/runs/{run_id}/close")
        answer = waiting.result(DEADLINE_S)

    expected = ([2], False) if comes == "entry" else ([], True)
    assert ([entry["seq"] for entry in answer["entries"]], answer["closed"]) == expected


def test_a_page_that_the_caller_has_is_not_sent_again(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": 1})
    first = http.get(f"/runs/{run_id}/events")
    known = {"if-none-match": f"W/{first.headers['etag']}"}  # as a proxy that compresses made it

    same, head = (http.request(method, f"/runs/{run_id}/events", headers=known) for method in ("GET", "HEAD"))
    append(http, run_id, {"payload": 2})
    grown = http.get(f"/runs/{run_id}/events", headers=known)

    assert (same.status_code, same.content, head.status_code) == (304, b"", 304)
    assert (grown.status_code, grown.json()["head"]) == (200, 2)
    assert http.head(f"/runs/{run_id}/events").headers["content-length"] == grown.headers["content-length"]


def test_a_page_ends_before_it_is_too_large_to_answer(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    for _ in range(5):
        append(http, run_id, {"payload": "x" * 1_000_000})

    answer = http.get(f"/runs/{run_id}/events")

    assert len(answer.content) < 4 << 20 and answer.json()["next"] == 4


def test_the_body_of_an_entry_has_its_content_type(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": {"a": [1, -0.0]}})

    body, missing = (http.get(f"/runs/{run_id}/events/{seq}") for seq in (1, 2))
    known = http.get(f"/runs/{run_id}/events/1", headers={"if-none-match": body.headers["etag"]})

    assert (body.text, body.headers["content-type"]) == ('{"a":[1,-0.0]}', "application/json")
    assert (code(missing), known.status_code) == ((404, "not_found"), 304)
    assert [code(http.get(f"/runs/{run_id}/events/{seq}"))[0] for seq in ("0", "9", "x")] == [404, 404, 400]


def test_a_run_in_a_file_is_read_like_one_in_the_store(start: Start, run_id: str) -> None:
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, run_id, *range(700))
        hot = http.get(f"/runs/{run_id}/events", params={"after": 10, "limit": 3}).json()
        http.post(f"/runs/{run_id}/close").raise_for_status()
        until(lambda: http.get(f"/runs/{run_id}").json()["is_reaped"] is True, "the run is let go of")
        cold = page(http, run_id, after=10, limit=3)
        rest, end = page(http, run_id, after=690), page(http, run_id, after=700, wait=60)
        body = http.get(f"/runs/{run_id}/events/7")

    assert (cold, hot["closed"]) == ({**hot, "closed": True}, False)
    assert ([entry["seq"] for entry in rest["entries"]], rest["next"]) == ([*range(691, 701)], 700)
    assert (end["entries"], end["head"], end["closed"], body.json()) == ([], 700, True, 6)


def test_a_page_of_a_file_has_the_epoch_of_its_entries(start: Start, run_id: str) -> None:
    first = start("memory://")
    with first.client() as http:
        publish(http, run_id, 1, 2, 3)
        warm, warm_body = http.get(f"/runs/{run_id}/events"), http.get(f"/runs/{run_id}/events/2")
        assert first.stop() == 0

    with start("memory://").client() as http:
        cold, body = http.get(f"/runs/{run_id}/events"), http.get(f"/runs/{run_id}/events/2")
        known = {"x-tape-epoch": cold.headers["x-tape-epoch"]}
        end = http.get(f"/runs/{run_id}/events", params={"after": 3}, headers=known)
        http.post("/runs", json={"run_id": run_id})
        publish(http, run_id, "new", "new", "new", "new")
        other = http.get(f"/runs/{run_id}/events", params={"after": 3}, headers=known)
        tags = {"if-none-match": f"{cold.headers['etag']}, {body.headers['etag']}"}
        news = [http.get(f"/runs/{run_id}/events{path}", headers=tags) for path in ("", "/2")]

    assert known["x-tape-epoch"] == warm.headers["x-tape-epoch"]
    assert body.headers["etag"] == warm_body.headers["etag"]
    assert (end.status_code, end.json()["entries"], end.headers["x-tape-epoch"]) == (200, [], known["x-tape-epoch"])
    assert code(other) == (400, "invalid_cursor")
    assert [answer.status_code for answer in news] == [200, 200] and news[1].json() == "new"


def test_a_gap_names_where_history_begins(start: Start, run_id: str) -> None:
    with start("memory://", "--event-ring-size", "10").client() as http:
        publish(http, run_id, *range(30))
        gone = http.get(f"/runs/{run_id}/events")

    assert (code(gone), gone.json()["available_from"]) == ((410, "broker_overflow_error"), 21)


def test_a_waiting_reader_counts_as_a_stream_and_is_answered_when_the_server_leaves(start: Start, run_id: str) -> None:
    server = start("memory://", "--max-subscribers", "1")
    with server.client() as http, ThreadPoolExecutor() as threads:
        publish(http, run_id, 1)
        waiting = threads.submit(admitted, http, f"/runs/{run_id}/events?after=1&wait=60")
        until(lambda: http.get(f"/runs/{run_id}/events?after=1&wait=0.01").status_code == 429, "it waits")
        assert server.stop() == 0
        answer = waiting.result(DEADLINE_S).json()

    assert (answer["entries"], answer["closed"]) == ([], False)


def admitted(http: httpx.Client, path: str) -> httpx.Response:
    """The answer to a reader that comes back until the other one, who asks whether it waits, has left its place."""
    while (answer := http.get(path)).status_code == httpx.codes.TOO_MANY_REQUESTS:
        pass
    return answer


def test_a_page_and_a_stream_go_on_where_the_other_ended(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2, 3)
    first = page(http, run_id, limit=1)
    http.post(f"/runs/{run_id}/close")

    with open_stream(http, "/events", {"last-event-id": str(first["next"])}, run_id=run_id) as listener:
        assert ids(listener.rest()) == [2, 3]


def send(http: httpx.Client, run_id: str, media_type: str, content: bytes, **query: str) -> httpx.Response:
    """Appends a body as the payload of one event."""
    headers = {"content-type": media_type}
    return http.post(f"/runs/{run_id}/events", params={"type": "frame", **query}, content=content, headers=headers)


def test_a_body_of_bytes_is_appended_and_read_as_it_was(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    sent = send(http, run_id, "image/png", b"\0\xff", subject="/a/b")
    body, (entry,) = http.get(f"/runs/{run_id}/events/1"), page(http, run_id)["entries"]

    assert (sent.status_code, sent.json()["entries"][0]["seq"]) == (201, 1)
    assert (body.content, body.headers["content-type"]) == (b"\0\xff", "image/png")
    assert (entry["data"], entry["content_type"], entry["type"]) == ("AP8=", "image/png", "frame")
    assert code(append(http, run_id, {"payload": 1})) == (400, "usage_error")


def test_the_body_of_a_stranger_is_no_page_of_this_server(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    send(http, run_id, "text/html", b"<script>alert(1)</script>")

    headers = http.get(f"/runs/{run_id}/events/1").headers

    assert (headers["content-disposition"], headers["content-security-policy"]) == ("attachment", "sandbox")
    assert headers["x-content-type-options"] == "nosniff"


def test_a_body_of_json_may_be_the_payload_itself(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    sent = send(http, run_id, "application/json", b'{"payload": 1}', schema_version="2")
    (entry,) = page(http, run_id)["entries"]

    assert sent.status_code == httpx.codes.CREATED
    assert (entry["data"], entry["type"], entry["schema_version"]) == ({"payload": 1}, "frame", 2)


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=x", 415), ("", 415),
        ("text/plain; charset=latin-1", 415), ("nonsense", 400),
    ],
)  # fmt: skip
def test_a_form_or_a_type_with_parameters_is_no_body_of_bytes(
    http: httpx.Client, run_id: str, media_type: str, status: int
) -> None:
    http.post("/runs", json={"run_id": run_id})

    assert send(http, run_id, media_type, b"a=b").status_code == status


def test_a_body_of_bytes_is_as_large_as_a_payload_may_be(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    assert send(http, run_id, "image/png", bytes((1 << 20) + 1)).status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert send(http, run_id, "image/png", bytes(1 << 20)).status_code == httpx.codes.CREATED
    assert len(http.get(f"/runs/{run_id}/events/1").content) == 1 << 20
