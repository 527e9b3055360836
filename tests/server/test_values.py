"""Values, signals and differences over HTTP, on every store that has ledgers."""

import json
from collections.abc import Iterator

import httpx
import pytest

import tape
from tape.wire.frames import Delivered
from tests.server.reading import open_stream
from tests.server.server import TapeServer

WITH_LEDGERS = pytest.mark.parametrize("store_url", ["memory", "sqlite", "postgres"], indirect=True)


@pytest.fixture
def at(run_id: str) -> str:
    """A value that no other test knows."""
    return f"/values/{run_id}/fx%20rate%2F%C3%A9"


def refused(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


@WITH_LEDGERS
def test_a_predicate_sees_what_a_value_was_before(http: httpx.Client, run_id: str) -> None:
    changed = "payload.value.value_json != prev_value_json && double(payload.value.value_json) > 100.0"

    with open_stream(http, "/events", subject=f"/tape/value/*/{run_id}/*", where=changed) as listener:
        for value in (70, 120, 120, 130):
            http.put(f"/values/{run_id}/fx", json={"value": value})
        listener.ids(2)

    found = [frame for frame in listener.frames if isinstance(frame, Delivered)]
    assert [frame.payload["value"]["value_json"] for frame in found] == ["120", "130"]


@WITH_LEDGERS
def test_each_write_is_a_version_and_a_deletion_leaves_a_tombstone(http: httpx.Client, at: str, run_id: str) -> None:
    one, two = http.put(at, json={"value": 1.1}), http.put(at, json={"value": [None], "writer": "ann"})
    known, gone, after = http.get(at), http.delete(at), http.get(at)

    assert [each.json()["version"] for each in (one, two, known, gone)] == [1, 2, 2, 3]
    assert known.json() == two.json() and known.headers["etag"] == '"2"'
    assert {**known.json(), "ts_ms": 0} == {
        "namespace": run_id, "key": "fx rate/é", "version": 2, "value": [None], "writer": "ann", "ts_ms": 0,
        "deleted": False,
    }  # fmt: skip
    assert gone.json()["deleted"] and gone.json()["value"] is None
    assert refused(after) == (404, "not_found") and "version 3" in after.json()["detail"]


@WITH_LEDGERS
@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        ({"if-match": '"2"'}, True),
        ({"if-match": "2"}, True),
        ({"if-match": 'W/"2"'}, True),  # a proxy that compresses makes a tag weak
        ({"if-match": "*"}, True),
        ({"if-match": '"1"'}, False),
        ({"if-match": 'W/"1"'}, False),
        ({"if-none-match": "*"}, False),
    ],
)
def test_a_write_on_a_stale_version_is_refused(
    http: httpx.Client, at: str, headers: dict[str, str], is_taken: bool
) -> None:
    for value in (1, 2):
        http.put(at, json={"value": value})

    written = http.put(at, json={"value": 3}, headers=headers)
    deleted = http.delete(at, headers={"if-match": '"1"'})

    assert written.status_code == 200 if is_taken else refused(written) == (409, "version_conflict")
    assert refused(deleted) == (409, "version_conflict")
    assert http.get(at).json()["version"] == (3 if is_taken else 2)


@WITH_LEDGERS
def test_what_is_not_there_is_created_once_and_not_deleted(http: httpx.Client, at: str) -> None:
    never = http.delete(at)
    first, second = (http.put(at, json={"value": n}, headers={"if-none-match": "*"}) for n in (1, 2))

    assert refused(never) == (404, "not_found") == refused(http.get(f"{at}.other"))
    assert first.status_code == 200 and refused(second) == (409, "version_conflict")


@WITH_LEDGERS
def test_a_write_over_any_version_needs_one(http: httpx.Client, at: str) -> None:
    over_any = {"if-match": "*"}

    never = http.put(at, json={"value": 1}, headers=over_any)
    http.put(at, json={"value": 1})
    written = http.put(at, json={"value": 2}, headers=over_any)
    http.delete(at, headers=over_any)
    deleted = http.put(at, json={"value": 3}, headers=over_any)

    assert refused(never) == refused(deleted) == (409, "conflict")
    assert written.json()["version"] == 2


@WITH_LEDGERS
def test_a_repeated_write_over_any_version_is_answered_as_the_first(http: httpx.Client, at: str, run_id: str) -> None:
    http.put(at, json={"value": 1})
    once = {"if-match": "*", "idempotency-key": run_id}

    first = http.put(at, json={"value": 2}, headers=once)
    http.delete(at)
    again = http.put(at, json={"value": 2}, headers=once)

    assert (again.status_code, again.json()) == (200, first.json())


@WITH_LEDGERS
@pytest.mark.parametrize("tag", ['"1"', 'W/"1"', '"7", W/"1"', "*"])
def test_a_reader_that_has_the_version_gets_no_body(http: httpx.Client, at: str, tag: str) -> None:
    http.put(at, json={"value": 1})

    same = http.get(at, headers={"if-none-match": tag})
    http.put(at, json={"value": 2})
    newer = http.get(at, headers={"if-none-match": '"1"'})

    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", '"1"')
    assert newer.json()["version"] == 2


@WITH_LEDGERS
def test_a_write_with_a_key_is_made_once(http: httpx.Client, at: str, run_id: str) -> None:
    key = {"idempotency-key": run_id}

    answers = [http.put(at, json={"value": 1}, headers=key) for _ in range(2)]
    other = http.put(at, json={"value": 2}, headers=key)

    assert answers[0].json() == answers[1].json() == http.get(at).json()
    assert refused(other) == (409, "key_conflict")


@WITH_LEDGERS
def test_the_versions_of_a_value_name_their_predecessors(http: httpx.Client, at: str, run_id: str) -> None:
    for value in range(3):
        http.put(at, json={"value": value})
    http.delete(at)
    http.put(f"/values/{run_id}/other", json={"value": 1})

    answer = http.get(f"{at}/history").json()["versions"]
    newest = http.get(f"{at}/history", params={"limit": 2}).json()["versions"]

    assert [(each["prev_version"], each["version"], each["value"]) for each in answer] == [
        (0, 1, 0), (1, 2, 1), (2, 3, 2), (3, 4, None),
    ]  # fmt: skip
    assert newest == answer[2:] and answer[-1]["deleted"]
    assert [each["key"] for each in http.get(f"/values/{run_id}").json()["values"]] == ["other"]
    assert refused(http.get(f"/values/{run_id}/never/history")) == (404, "not_found")


@WITH_LEDGERS
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"if-match": "two"}, {"value": 1}),
        ({"if-match": '"1"', "if-none-match": "*"}, {"value": 1}),
        ({"if-none-match": '"1"'}, {"value": 1}),
        ({}, {}),
        ({}, {"value": 1, "colour": "red"}),
        ({}, 7),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    http: httpx.Client, at: str, headers: dict[str, str], body: object
) -> None:
    assert refused(http.put(at, json=body, headers=headers)) == (400, "usage_error")
    assert http.get(at).status_code == 404


@WITH_LEDGERS
def test_a_value_is_not_a_file(http: httpx.Client, at: str) -> None:
    assert refused(http.put(at, json={"value": "x" * 200_000})) == (413, "too_large")


@pytest.mark.parametrize("store_url", ["redis"], indirect=True)
def test_a_store_without_ledgers_reports_it(http: httpx.Client, at: str, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    http.post(f"/runs/{run_id}/events", json={"payload": 1})

    answers = [
        http.get(at), http.put(at, json={"value": 1}), http.delete(at), http.post(f"/runs/{run_id}/gates/g"),
        http.post("/forks", json={"parent_run_id": run_id, "at_seq": 1, "effects": "stub"}),
    ]  # fmt: skip

    assert {refused(answer) for answer in answers} == {(400, "usage_error")}
    assert all("ledgers" in answer.json()["detail"] for answer in answers)


@pytest.fixture
def waiting(lasting_server: TapeServer, run_id: str) -> Iterator[str]:
    """A run that waits at a gate, begun by another process than the server."""
    with tape.connect(lasting_server.store) as client:
        begun = client.runs.begin("app", invocation=run_id).run.run_id
        client.decisions.record(begun, 0, model="m", response="pay")
        effect = client.effects.begin(begun, "wire", 7, decision_index=0)
        client.effects.complete(begun, effect.idempotency_key, response="paid")
        client.gates.wait(begun, "approval")
        yield begun


def test_a_signal_resumes_a_run_once(lasting: httpx.Client, waiting: str, lasting_server: TapeServer) -> None:
    path, key = f"/runs/{waiting}/gates/approval", {"idempotency-key": waiting}

    sent = [lasting.post(path, json={"resolution": "yes"}, headers=key).json() for _ in range(2)]

    assert sent == [{"accepted": True, "run_id": waiting, "run_status": "runnable"}] * 2
    with tape.connect(lasting_server.store) as client:
        assert client.gates.wait(waiting, "approval").resolution_json == '"yes"'
    assert refused(lasting.post("/runs/nobody/gates/g")) == (404, "not_found")


def test_a_run_of_a_ledger_is_cancelled_in_its_ledger(
    lasting: httpx.Client, waiting: str, lasting_server: TapeServer
) -> None:
    before = lasting.get(f"/runs/{waiting}").json()["ledger"]
    ended = lasting.post(f"/runs/{waiting}/cancel")

    assert (before["status"], before["waiting_on_gate"]) == ("waiting", "approval")
    assert lasting.get(f"/runs/{waiting}").json()["ledger"]["status"] == "cancelled"
    assert ended.status_code == 200
    assert lasting.get(f"/runs/{waiting}").json()["last_seq"] == ended.json()["last_seq"]
    with tape.connect(lasting_server.store) as client:
        assert client.runs.get(waiting).status is tape.RunStatus.CANCELLED


@pytest.mark.parametrize("policy", ["replay", "stub", "live"])
def test_a_fork_inherits_ledgers_and_stands_beside_its_parent(
    lasting: httpx.Client, waiting: str, lasting_server: TapeServer, policy: str
) -> None:
    last_seq = lasting.get(f"/runs/{waiting}").json()["last_seq"]
    asked = {"parent_run_id": waiting, "at_seq": last_seq, "effects": policy, "mutation": {"say": "no"}}
    child = lasting.post("/forks", json=asked).json()["child_run_id"]
    with tape.connect(lasting_server.store) as client:
        run = client.runs.get(child)
        client.decisions.record(child, 1, response="wait")

    answer = lasting.get(f"/runs/{waiting}/diff/{child}").json()

    assert (run.status, run.labels["tape.effects"]) == (tape.RunStatus.RUNNABLE, policy)
    assert (answer["shared"], answer["entries"][0]["other"]["type"]) == (last_seq, "fork")
    assert [(each["what"], each["place"], each["is_same"]) for each in answer["ledgers"]] == [
        ("decision", "0", True), ("effect", "decision-0/wire/0", True), ("decision", "1", False),
    ]  # fmt: skip
    assert answer["ledgers"][2]["one"] is None and json.loads(answer["ledgers"][1]["other"]["response_json"]) == "paid"


def test_the_document_has_every_path_of_ledgers(lasting: httpx.Client) -> None:
    paths = lasting.get("/openapi.json").json()["paths"]

    assert set(paths["/values/{namespace}/{key}"]) == {"get", "put", "delete"}
    assert {"/values/{namespace}/{key}/history", "/runs/{run_id}/gates/{gate}", "/runs/{run_id}/diff/{other}"} <= set(
        paths
    )
