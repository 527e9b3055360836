"""Reactions and tasks over HTTP: whatever can be done to them, through real sockets, on each store that has them."""

from collections.abc import Iterator
from uuid import uuid4

import anyio
import httpx
import pytest

from tape.compose import open_store
from tape.core.task import ClaimRequest, Died, Settlement, TaskClaim
from tests.server.server import TapeServer
from tests.server.test_reactions import eventually

pytestmark = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def rule() -> str:
    """A reaction that no other test knows."""
    return f"rule-{uuid4().hex[:8]}"


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def test_a_reaction_is_registered_changed_read_and_removed(http: httpx.Client, rule: str) -> None:
    made = http.post("/reactions", json={"reaction_id": rule, "subject_pattern": f"/{rule}/**"})
    changed = http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**", "max_concurrency": 7})
    listed = http.get("/reactions", params={"subject_pattern": f"/{rule}/**"}).json()["reactions"]
    shown = http.get(f"/reactions/{rule}").json()
    removed = http.delete(f"/reactions/{rule}")

    assert (made.status_code, changed.status_code, removed.status_code) == (201, 200, 200)
    assert [each["reaction_id"] for each in listed] == [rule] and shown["max_concurrency"] == 7
    assert removed.json() == {"found": True} and made.headers["location"] == f"/reactions/{rule}"
    left = http.get("/reactions", params={"subject_pattern": f"/{rule}/**"}).json()
    assert left == {"reactions": [], "next_cursor": ""}


def test_what_is_published_is_matched_by_the_server_and_its_lag_goes_to_zero(http: httpx.Client, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**", "predicate_cel": "payload.n > 1"})
    places = publish(http, rule, [{"n": 1}, {"n": 2}, {}])

    tasks = eventually(lambda: of(http, rule), lambda found: len(found) == 1)
    shown = eventually(lambda: http.get(f"/reactions/{rule}").json(), lambda shown: shown["lag"] == 0)

    assert tasks[0]["source_global_seq"] == places[1] and shown["last_global_seq"] >= places[2]
    assert shown["errors"] == 1 and "n" in shown["last_error"]


def test_a_list_of_large_tasks_is_read_page_by_page(http: httpx.Client, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**"})
    for _ in range(6):
        publish(http, rule, [{"n": "x" * 900_000}])
    bare = {"reaction_id": rule, "without_payloads": "true"}
    listed = eventually(lambda: of(http, rule, without_payloads="true"), lambda found: len(found) == 6)

    first = http.get("/tasks", params={"reaction_id": rule}).json()
    rest = http.get("/tasks", params={"reaction_id": rule, "cursor": first["next_cursor"]}).json()

    assert 1 <= len(first["tasks"]) < 6 and len(rest["tasks"]) == 6 - len(first["tasks"])
    assert [task["task_id"] for task in first["tasks"] + rest["tasks"]] == [task["task_id"] for task in listed]
    for cursor in ("no", '[9223372036854775808, "a"]'):
        assert http.get("/tasks", params={**bare, "cursor": cursor}).json()["code"] == "invalid_cursor"


def test_a_list_of_tasks_leaves_payloads_out_where_that_is_asked_for(http: httpx.Client, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**"})
    publish(http, rule, [{"n": 1}])
    (whole,) = eventually(lambda: of(http, rule), lambda found: len(found) == 1)

    (bare,) = http.get("/tasks", params={"reaction_id": rule, "without_payloads": "true"}).json()["tasks"]
    refusal = http.get("/tasks", params={"without_payloads": "some"})

    assert whole["payload_json"] == '{"n":1}' and bare == {**whole, "payload_json": ""}
    assert refusal.status_code == 400 and refusal.json()["detail"].startswith("without_payloads: ")


def test_a_paused_reaction_holds_back_until_it_is_resumed(http: httpx.Client, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**"})
    paused = http.post(f"/reactions/{rule}/pause", json={"reason": "maintenance"}).json()
    places = publish(http, rule, [1])
    held = http.get(f"/reactions/{rule}/explain/{places[0]}").json()

    resumed = http.post(f"/reactions/{rule}/resume").json()

    assert (paused["paused"], resumed["paused"]) == ("maintenance", "")
    assert (held["outcome"], held["is_active"]) == ("not_active", False) and "maintenance" in held["reason"]
    eventually(lambda: of(http, rule), lambda found: [task["source_global_seq"] for task in found] == places)


def test_an_entry_is_explained_with_the_value_of_each_part(http: httpx.Client, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**", "predicate_cel": "payload.n > 1"})
    first, second = publish(http, rule, [{"n": 1}, {"n": 2}])
    (task,) = eventually(lambda: of(http, rule), bool)

    answer = [http.get(f"/reactions/{rule}/explain/{place}").json() for place in (first, second)]

    assert [each["outcome"] for each in answer] == ["no_match", "task"] and answer[1]["task"] == task
    assert answer[0]["parts"] == [
        {"position": "1:11", "text": "payload.n > 1", "value": "false", "error": None},
        {"position": "1:8", "text": "payload.n", "value": "1", "error": None},
    ]


def test_a_dead_task_has_a_life_and_can_be_replayed(http: httpx.Client, server: TapeServer, rule: str) -> None:
    http.put(f"/reactions/{rule}", json={"subject_pattern": f"/{rule}/**", "max_concurrency": 10})
    publish(http, rule, [1, 2])
    eventually(lambda: of(http, rule), lambda found: len(found) == 2)
    anyio.run(make_dead_task, server.store, rule)
    one, other = (task["task_id"] for task in of(http, rule, status="dlq"))

    by_name, again = (http.post("/tasks/replay", json={"task_ids": [one]}).json() for _ in range(2))
    by_filter = http.post("/tasks/replay", json={"reaction_id": rule}).json()
    shown = http.get(f"/tasks/{one}").json()

    assert (by_name, again, by_filter) == ({"task_ids": [one]}, {"task_ids": []}, {"task_ids": [other]})
    assert [each["type"] for each in shown["life"]] == ["dead", "replayed"]
    assert shown["life"][0]["error"] == "no such account" and shown["task"]["status"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/reactions/nobody", None, 404, "no reaction"),
        ("DELETE", "/reactions/nobody", None, 404, "no reaction"),
        ("POST", "/reactions/nobody/pause", {"reason": "x"}, 404, "no reaction"),
        ("POST", "/reactions/nobody/resume", None, 404, "no reaction"),
        ("GET", "/reactions/nobody/explain/1", None, 404, "no reaction"),
        ("GET", "/reactions/nobody/explain/0", None, 400, "global_seq: "),
        ("PUT", "/reactions/x", {"subject_pattern": "no/slash"}, 400, "slash"),
        ("PUT", "/reactions/x", {"predicate_cel": "1 + 1"}, 400, "not bool"),
        ("PUT", "/reactions/x", {"predicate_cel": "'\0' == type"}, 400, "NUL"),
        ("PUT", "/reactions/x", {"num_shards": 0}, 400, "num_shards"),
        ("PUT", "/reactions/x", {"unknown": 1}, 400, "unknown"),
        ("PUT", "/reactions/.x", {}, 400, "reaction_id"),
        ("GET", "/tasks?status=5", None, 400, "status is pending, "),
        ("GET", "/tasks?status=failed", None, 400, "status is pending, claimed, done, dlq, not 'failed'"),
        ("GET", "/tasks?limit=10001", None, 400, "limit"),
        ("GET", f"/tasks?limit=00001{'9' * 20}", None, 400, "limit"),
        ("GET", "/tasks?reaction_id=%00", None, 400, "reaction_id"),
        ("GET", "/tasks/nobody", None, 404, "no task"),
        ("GET", "/tasks/%00", None, 400, "task_id"),
        ("POST", "/tasks/replay", {"reaction_id": "a", "task_ids": ["b"]}, 400, "not both"),
    ],
)
def test_an_invalid_request_is_a_problem_with_a_reason(
    http: httpx.Client, method: str, path: str, body: object, status: int, reason: str
) -> None:
    answer = http.request(method, path, json=body)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert reason in answer.json()["detail"]


def publish(http: httpx.Client, rule: str, payloads: list[object]) -> list[int]:
    """Positions of entries that are about a reaction's subjects."""
    http.post("/runs", json={"run_id": rule})
    events = [{"payload": payload, "subject": f"/{rule}/x"} for payload in payloads]
    return [each["global_seq"] for each in http.post(f"/runs/{rule}/events", json=events).json()["entries"]]


def of(http: httpx.Client, rule: str, **filters: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = http.get("/tasks", params={"reaction_id": rule, **filters}).json()["tasks"]
    return found


async def make_dead_task(url: str, rule: str) -> None:
    async with open_store(url) as store:
        claimed = await store.tasks.claim(ClaimRequest(owner="me", reaction_ids=(rule,)))
        claims = [TaskClaim(task.task_id, "me", task.attempt) for task in claimed.tasks]
        await store.tasks.settle([Settlement(claim, Died("no such account")) for claim in claims])
