"""Runs and events over HTTP, on every store."""

from typing import Any

import httpx
import pytest


def append(http: httpx.Client, run_id: str, body: Any, **headers: str) -> httpx.Response:
    return http.post(f"/runs/{run_id}/events", json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def code(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


def test_a_run_is_opened_written_and_closed(http: httpx.Client, run_id: str) -> None:
    opened = http.post("/runs", json={"run_id": run_id, "label": "first", "started_at": "today"})
    one, many = append(http, run_id, {"payload": {"n": 1}}), append(http, run_id, [{"payload": 2}, {"payload": None}])
    closed = http.post(f"/runs/{run_id}/close")

    assert (opened.status_code, opened.json()["run_id"]) == (201, run_id)
    assert opened.json()["epoch"] > 1_600_000_000_000
    assert (one.status_code, one.json()["entries"][0]["seq"]) == (201, 1)
    assert many.json()["entries"][0]["global_seq"] == one.json()["entries"][0]["global_seq"] + 1
    assert [entry["seq"] for entry in many.json()["entries"]] == [2, 3]
    assert (closed.status_code, closed.json()["last_seq"]) == (200, 3)


def test_runs_are_listed_once_open_ones_first(http: httpx.Client, run_id: str) -> None:
    old, new, again = names = [f"{run_id}.{word}" for word in ("old", "new", "again")]
    for name in names:
        http.post("/runs", json={"run_id": name, "label": "mine"})
        append(http, name, {"payload": 1})
    for name in (old, again):
        http.post(f"/runs/{name}/close")
    http.post("/runs", json={"run_id": again})

    runs = [run for run in http.get("/runs").json()["runs"] if run["run_id"] in names]

    assert [run["status"] for run in runs] == ["running", "running", "complete"]
    assert {run["run_id"] for run in runs[:2]} == {new, again}
    assert runs[2] == {"run_id": old, "label": "mine", "started_at": None, "n_events": 1, "status": "complete"}


def pages(http: httpx.Client, **query: str | int) -> list[list[str]]:
    """The ids on each page of a list of runs."""
    found: list[list[str]] = []
    cursor = ""
    while not found or cursor:
        page = http.get("/runs", params={**query, "cursor": cursor}).json()
        found.append([run["run_id"] for run in page["runs"]])
        cursor = page["next_cursor"]
    return found


def test_runs_are_listed_page_by_page_with_filters(http: httpx.Client, run_id: str) -> None:
    one, two, three = names = [f"{run_id}.{number}" for number in (1, 2, 3)]
    for name in names:
        http.post("/runs", json={"run_id": name, "label": run_id, "app": f"{run_id}.app"})
    http.post(f"/runs/{two}/close")

    assert pages(http, prefix=f"{run_id}.", limit=2) == [[one, two], [three]]
    assert pages(http, prefix=f"{run_id}.", limit=3) == [names]
    assert sorted(name for (name,) in pages(http, label=run_id, order="newest", limit=1)) == names
    assert pages(http, app=f"{run_id}.app", status="complete") == [[two]]
    assert pages(http, app=f"{run_id}.app", order="live", limit=1)[-1] == [two]
    assert pages(http, prefix=f"{run_id}.", opened_before=1) == pages(http, parent=one) == [[]]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # the room is measured where the answer is written
def test_a_page_of_runs_ends_before_it_is_too_large_to_answer(http: httpx.Client, run_id: str) -> None:
    names = [f"{run_id}.{number:03}" for number in range(520)]
    for name in names:
        http.post("/runs", json={"run_id": name, "label": "😀" * 1024, "started_at": "😀" * 1024})

    answer = http.get("/runs", params={"prefix": f"{run_id}.", "limit": 1000})

    assert len(answer.content) < 4 << 20
    assert [name for page in pages(http, prefix=f"{run_id}.", limit=1000) for name in page] == names
    assert answer.json()["next_cursor"]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"}, {"limit": "1001"}, {"status": "closed"}, {"order": "id,newest"}, {"prefix": "a/b"},
        {"prefix": ""}, {"parent": ""},
        {"opened_after": "-1"}, {"closed_before": "2026-05-21"}, {"opened_before": str(1 << 63)}, {"label": "a\nb"},
        {"status": "open", "closed_after": "1"}, {"cursor": "x"}, {"cursor": "[0,1,\"a\"]"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # no store is asked
def test_a_list_of_runs_that_cannot_be_is_refused(http: httpx.Client, query: dict[str, str]) -> None:
    assert http.get("/runs", params=query).status_code == 400


def test_a_cursor_of_another_list_of_runs_is_refused(http: httpx.Client, run_id: str) -> None:
    for number in (1, 2):
        http.post("/runs", json={"run_id": f"{run_id}.{number}", "label": run_id})
    cursor = http.get("/runs", params={"label": run_id, "limit": 1}).json()["next_cursor"]

    answers = [http.get("/runs", params={**query, "cursor": cursor}) for query in ({}, {"label": "other"})]
    damaged = http.get("/runs", params={"label": run_id, "cursor": f"{cursor[:-2]}AA"})

    assert [code(answer) for answer in (*answers, damaged)] == [(400, "invalid_cursor")] * 3


def test_a_run_has_its_identity_and_its_head(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id, "app": "a", "user": "u", "session": "s"})
    append(http, run_id, [{"payload": 1}] * 3)

    run = http.get(f"/runs/{run_id}").json()

    assert (run["app"], run["user"], run["session"], run["status"]) == ("a", "u", "s", "running")
    assert (run["last_seq"], run["floor"], run["closed_seq"], run["n_events"]) == (3, 1, None, 3)


def test_a_run_without_a_name_gets_one(http: httpx.Client) -> None:
    opened = http.post("/runs")

    assert append(http, opened.json()["run_id"], {"payload": 1}).status_code == 201
    assert http.get(opened.headers["location"]).json()["n_events"] == 1


def test_opening_twice_is_a_conflict_and_closing_twice_is_not(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    assert code(http.post("/runs", json={"run_id": run_id})) == (409, "run_open")
    assert [http.post(f"/runs/{run_id}/close").status_code for _ in range(2)] == [200, 200]


def test_a_closed_run_refuses_events_and_a_reopened_one_continues(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": 1})
    http.post(f"/runs/{run_id}/close")

    assert code(append(http, run_id, {"payload": 2})) == (409, "run_closed")
    assert http.post("/runs", json={"run_id": run_id}).status_code == 201
    assert append(http, run_id, {"payload": 2}).json()["entries"][0]["seq"] == 2


def test_an_unknown_run_is_not_found(http: httpx.Client) -> None:
    asked = [http.get("/runs/none"), http.post("/runs/none/close"), append(http, "none", {"payload": 1})]

    assert [code(each) for each in asked] == [(404, "run_not_found")] * 3


def test_a_body_of_a_request_that_takes_none_is_refused(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    assert code(http.post(f"/runs/{run_id}/close", json={"reason": "done"})) == (400, "usage_error")
    assert http.get(f"/runs/{run_id}").json()["status"] == "running"


def test_the_same_key_gives_the_first_positions(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    first = append(http, run_id, [{"payload": 1}, {"payload": 2}], Idempotency_Key="k")
    again = append(http, run_id, [{"payload": 1}, {"payload": 2}], Idempotency_Key="k")
    other = append(http, run_id, [{"payload": 1}, {"payload": 3}], Idempotency_Key="k")

    assert (again.status_code, again.json()) == (201, first.json())
    assert code(other) == (409, "key_conflict")
    assert http.get(f"/runs/{run_id}").json()["last_seq"] == 2


def test_an_expected_seq_that_is_not_the_last_appends_nothing(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    assert append(http, run_id, {"payload": 1}, Expected_Seq="0").status_code == 201
    assert code(append(http, run_id, {"payload": 2}, Expected_Seq="0")) == (409, "expected_seq_conflict")
    assert http.get(f"/runs/{run_id}").json()["last_seq"] == 1


def test_a_request_is_all_there_or_absent(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})

    refused = append(http, run_id, [{"payload": 1}, {"payload": 2, "subject": "/tape/run/started/x"}])

    assert code(refused) == (400, "reserved_subject")
    assert http.get(f"/runs/{run_id}").json()["last_seq"] == 0


def test_an_event_is_streamed_with_its_span_and_client(http: httpx.Client, run_id: str) -> None:
    trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "X_Client_Id": "tab-1"}
    http.post("/runs", json={"run_id": run_id})
    append(http, run_id, {"payload": {"x": -0.0}, "type": "T", "subject": "/a/b", "schema_version": 3}, **trace)
    http.post(f"/runs/{run_id}/close")

    text = http.get("/events", params={"run_id": run_id}).text

    assert '"data":{"x":-0.0}' in text and "event: T\n" in text and '"subject":"/a/b"' in text
    assert f'"trace_id":"{"a" * 32}","span_id":"{"b" * 16}"' in text
    assert '"originatorClientId":"tab-1"' in text and '"schema_version":3' in text
