"""Forks through a real server, on every store: P16, and a child is its parent 1…k and then its own."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from shutil import copy

import anyio
import httpx
import pytest

from tape.broker import JournalBroker, RunId
from tape.compose import open_store, run_journal
from tape.wire.frames import Delivered
from tests.conftest import Scale
from tests.process.processes import until
from tests.server import players
from tests.server.conftest import Start
from tests.server.reading import open_stream, publish
from tests.server.server import TapeServer

PLAYERS = ("--producers", "players")


@pytest.fixture(scope="module")
def server(store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    """A server on each store that has loaded the producers of the tests."""
    folder = with_players(tmp_path_factory.mktemp("serve"))
    with TapeServer(folder, store_url, *PLAYERS) as server:
        yield server


def with_players(folder: Path) -> Path:
    copy(Path(players.__file__), folder / "players.py")
    return folder


def url_of(store: str, folder: Path, request: pytest.FixtureRequest) -> str:
    match store:
        case "memory":
            return "memory://"
        case "sqlite":
            return f"sqlite:///{folder}/tape.db"
        case _:
            return str(request.getfixturevalue(f"{store}_url"))


def fork(http: httpx.Client, parent: str, at_seq: int, **more: object) -> str:
    answer = http.post("/forks", json={"parent_run_id": parent, "at_seq": at_seq, **more})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["parent_run_id"], answer.json()["at_seq"]) == (parent, at_seq)
    return str(answer.json()["child_run_id"])


def refusal(http: httpx.Client, **body: object) -> tuple[int, str, str]:
    answer = http.post("/forks", json=body)
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"], answer.json()["detail"]


def lines(http: httpx.Client, run_id: str) -> list[str]:
    """The entries of a run that has ended, or ends meanwhile, byte for byte."""
    text = http.get("/events", params={"run_id": run_id}).text
    return [line for line in text.splitlines() if line.startswith('data: {"id"')]


def payloads(http: httpx.Client, run_id: str) -> list[tuple[int, str, object]]:
    with open_stream(http, "/events", run_id=run_id) as listener:
        return [(frame.id, frame.type, frame.payload) for frame in listener.rest() if isinstance(frame, Delivered)]


def detail(http: httpx.Client, run_id: str) -> dict[str, object]:
    answer = http.get(f"/runs/{run_id}")
    return dict(answer.json()) if answer.status_code == 200 else {}


def test_a_child_is_its_parent_up_to_the_fork_and_then_its_producers_events(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, *range(5))
    child = fork(http, run_id, 3, mutation={"wind": 9}, producer="counter", n_turns=2, reason="what if")

    found = payloads(http, child)

    turns = [{"turn": n, "after": 3, "mutation": {"wind": 9}} for n in (1, 2)]
    assert found == [
        *((n + 1, "message", n) for n in range(3)),
        (4, "fork", {"parent_run_id": run_id, "at_seq": 3, "reason": "what if"}),
        (5, "mutation", {"wind": 9}),
        *((n + 6, "turn", turn) for n, turn in enumerate(turns)),
    ]
    assert (detail(http, child)["status"], detail(http, child)["n_events"]) == ("complete", 7)
    assert (detail(http, run_id)["status"], detail(http, run_id)["n_events"]) == ("running", 5)


def test_without_a_producer_nothing_is_replayed_and_the_child_stays_open(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)

    child = fork(http, run_id, 1, n_turns=5)

    assert publish(http, child, "mine") == [3]
    assert detail(http, child)["status"] == "running"


def test_a_childs_first_events_arrive_while_its_producer_runs_and_the_rest_live(
    http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, *range(3))
    child = fork(http, run_id, 2, producer="endless")

    with open_stream(http, "/events", run_id=child) as listener:
        first = listener.ids(4)[:4]
        more = listener.ids(30)[:30]

    http.post(f"/runs/{child}/cancel").raise_for_status()
    assert first == [1, 2, 3, 4]
    assert more == [*range(1, 31)]


def test_the_arena_continues_in_a_child_and_a_mutation_changes_its_end(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id})
    first = fork(http, run_id, 0, producer="arena", n_turns=3)
    whole = payloads(http, first)
    at_seq = [seq for seq, name, _ in whole if name == "turn_start"][1] - 1

    same = payloads(http, fork(http, first, at_seq, producer="arena", n_turns=2))
    other = payloads(http, fork(http, first, at_seq, producer="arena", n_turns=2, mutation={"food": 0}))

    assert [event[1:] for event in same[at_seq + 1 :]] == [event[1:] for event in whole[at_seq:]]
    assert other[-1][1] == same[-1][1] == "metric" and other[-1][2] != same[-1][2]


def test_a_cancelled_replay_stops_and_its_run_is_cancelled(server: TapeServer, http: httpx.Client, run_id: str) -> None:
    (server.folder / "ended.txt").unlink(missing_ok=True)
    publish(http, run_id, 1)
    child = fork(http, run_id, 1, producer="endless")
    until(lambda: int(str(detail(http, child)["n_events"])) > 5, "it is at work")

    cancelled = http.post(f"/runs/{child}/cancel")

    (*_, last) = found = payloads(http, child)
    assert (cancelled.status_code, cancelled.json()["last_seq"]) == (200, last[0])
    assert last[1:] == ("cancelled", {"reason": "it was asked for"})
    assert [seq for seq, _, _ in found] == [*range(1, len(found) + 1)]
    until(lambda: (server.folder / "ended.txt").exists(), "its thread has ended")
    assert (server.folder / "ended.txt").read_text() == "RunClosed"
    assert http.post(f"/runs/{child}/cancel").json()["last_seq"] == last[0]


@pytest.mark.parametrize(
    ("producer", "reason"),
    [
        ("broken", "broken: ValueError: out of   dice"),
        ("leaver", "leaver: RuntimeError: it raised SystemExit"),
        ("exhausted", "exhausted: RuntimeError: it raised StopIteration"),
    ],
)
def test_a_producer_that_fails_ends_its_child_with_the_reason(
    http: httpx.Client, run_id: str, producer: str, reason: str
) -> None:
    publish(http, run_id, 1)

    *_, last = payloads(http, fork(http, run_id, 1, producer=producer))

    assert last[1:] == ("failed", {"reason": reason})
    assert http.get("/health").status_code == 200


def test_a_producer_speaks_in_its_own_child_only(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)

    *_, last = payloads(http, fork(http, run_id, 1, producer="stranger"))

    assert last[1] == "failed" and "'somebody-elses' does not match" in str(last[2])


def test_a_producer_that_runs_ahead_is_held_back_and_loses_nothing(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)

    found = payloads(http, fork(http, run_id, 1, producer="flood", n_turns=50))

    assert [data["number"] for _, name, data in found if name == "flood"] == [*range(2500)]  # type: ignore[index]


def test_a_fork_beyond_the_head_is_a_400_that_names_the_bounds(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2)

    status, code, detail = refusal(http, parent_run_id=run_id, at_seq=3)

    assert (status, code) == (400, "usage_error")
    assert detail == f"run '{run_id}' can be forked at 0 to 2, not at 3"


def test_a_fork_of_a_missing_run_is_a_404(http: httpx.Client, run_id: str) -> None:
    assert refusal(http, parent_run_id=run_id, at_seq=0)[:2] == (404, "run_not_found")


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
async def test_a_fork_of_a_reaped_run_is_a_410_with_the_gap(
    request: pytest.FixtureRequest, start: Start, tmp_path: Path, store: str
) -> None:
    url = url_of(store, tmp_path, request)
    with start(url).client() as http:
        publish(http, "r", 1, 2)
        async with JournalBroker(url) as broker:
            broker.close_run(RunId("r"))
            broker.reap(RunId("r"))

        answers = [refusal(http, parent_run_id="r", at_seq=at_seq) for at_seq in (0, 1, 2, 9)]

    reasons = [f"run 'r' begins at 3; {first} to 2 are gone" for first in (1, 1, 2, 2)]
    assert answers == [(410, "broker_overflow_error", reason) for reason in reasons]


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
@pytest.mark.parametrize("steps", [(), ("close",), ("close", "reap")], ids=["open", "closed", "reaped"])
def test_an_empty_run_has_lost_nothing_and_is_forked_at_0_only(
    request: pytest.FixtureRequest, start: Start, tmp_path: Path, store: str, steps: tuple[str, ...]
) -> None:
    with start(url_of(store, tmp_path, request)).client() as http:
        http.post("/runs", json={"run_id": "r"}).raise_for_status()
        for step in steps:
            http.post(f"/runs/r/{step}").raise_for_status()

        answer = refusal(http, parent_run_id="r", at_seq=9)

        assert answer == (400, "usage_error", "run 'r' can be forked at 0 to 0, not at 9")
        assert fork(http, "r", 0)


def test_a_run_reaped_from_memory_cannot_be_forked(start: Start) -> None:
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, "r", 1, 2)
        http.post("/runs/r/close").raise_for_status()
        until(lambda: detail(http, "r").get("is_reaped") is True, "the run is let go of")

        assert refusal(http, parent_run_id="r", at_seq=2)[:2] == (410, "broker_overflow_error")


def test_a_producer_gets_as_much_of_a_prefix_as_is_left(start: Start, tmp_path: Path) -> None:
    with_players(tmp_path)
    with start("memory://", *PLAYERS, "--event-ring-size", "50").client() as http:
        publish(http, "r", *range(100))
        child = fork(http, "r", 80, producer="counter", n_turns=1)

        *_, last = payloads(http, child)

    assert (last[0], last[2]) == (82, {"turn": 1, "after": 30, "mutation": None})


def test_a_run_that_only_its_file_still_has_cannot_be_forked(start: Start) -> None:
    first = start("memory://")
    with first.client() as http:
        publish(http, "r", 1, 2)
        first.signal(signal.SIGTERM)
        assert first.wait() == 0
    with start("memory://").client() as http:
        assert lines(http, "r")

        assert refusal(http, parent_run_id="r", at_seq=1)[:2] == (410, "broker_overflow_error")


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ({"effects": "sometimes"}, "effects"),
        ({"producer": "nobody"}, "there is no producer 'nobody' here; there are 'arena', 'broken'"),
        ({"producer": "arena", "mutation": {"gods": 1}}, "producer 'arena' refuses the mutation: a mutation may name"),
        ({"producer": "arena", "mutation": [1]}, "producer 'arena' refuses the mutation: a mutation is an object"),
        ({"n_turns": 201}, "n_turns"),
        ({"n_turns": -1}, "n_turns"),
        ({"at_seq": -1}, "at_seq"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_there_is_a_child(
    http: httpx.Client, run_id: str, asked: dict[str, object], detail: str
) -> None:
    publish(http, run_id, 1)
    before = [run["run_id"] for run in http.get("/runs").json()["runs"]]

    status, code, why = refusal(http, **{"parent_run_id": run_id, "at_seq": 1, **asked})

    assert (status, code) == (400, "usage_error") and detail in why
    assert [run["run_id"] for run in http.get("/runs").json()["runs"]] == before


async def test_p16_a_parent_that_is_written_to_and_forked_keeps_its_hash(
    server: TapeServer, http: httpx.Client, run_id: str, scale: Scale
) -> None:
    publish(http, run_id, *range(20))
    before = hash_of(http, run_id, 20)

    forks = scale(21)  # one at each position
    async with server.async_client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(write, client, run_id, forks)
        for number in range(forks):
            body = {"parent_run_id": run_id, "at_seq": number % 21}
            (await client.post("/forks", json=body)).raise_for_status()

    assert detail(http, run_id)["n_events"] == 20 + forks
    assert hash_of(http, run_id, 20) == before


async def write(client: httpx.AsyncClient, run_id: str, events: int) -> None:
    """About 200 a second."""
    for number in range(events):
        (await client.post(f"/runs/{run_id}/events", json={"payload": number})).raise_for_status()
        await anyio.sleep(0.004)


def hash_of(http: httpx.Client, run_id: str, first: int) -> str:
    """What the first so many entries of an open run hash to, positions and all."""
    with open_stream(http, "/events", run_id=run_id) as listener:
        listener.ids(first)
        delivered = [frame for frame in listener.frames if isinstance(frame, Delivered)][:first]
    return sha256(repr(delivered).encode()).hexdigest()


def test_no_subject_stream_and_no_count_sees_an_inherited_entry_twice(http: httpx.Client, run_id: str) -> None:
    subject = f"/forks/{run_id}"
    http.post("/runs", json={"run_id": run_id})
    before = http.get("/metrics", headers={"accept": "application/json"}).json()["events_published"]
    for number in range(3):
        http.post(f"/runs/{run_id}/events", json={"payload": number, "subject": subject})
    children = [fork(http, run_id, 3, producer="counter", n_turns=1) for _ in range(4)]
    for child in children:
        payloads(http, child)

    with open_stream(http, "/events", subject=f"{subject}/**", from_global_seq=0) as listener:
        http.post(f"/runs/{run_id}/events", json={"payload": "last", "subject": subject})
        listener.until(lambda frames: any(getattr(frame, "payload", None) == "last" for frame in frames))
        seen = [frame.payload for frame in listener.frames if isinstance(frame, Delivered)]

    after = http.get("/metrics", headers={"accept": "application/json"}).json()["events_published"]
    assert seen == [0, 1, 2, "last"]
    assert after - before == 3 + 4 * (1 + 1) + 1  # the parent's, a fork entry and a turn of each child, the last


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
async def test_kill_9_in_the_middle_of_a_replay_leaves_a_child_that_any_node_closes(
    request: pytest.FixtureRequest, start: Start, tmp_path: Path, store: str
) -> None:
    url = url_of(store, with_players(tmp_path), request)
    server = start(url, *PLAYERS)
    with server.client() as http:
        publish(http, "r", *range(3))
        child, idle = fork(http, "r", 2, producer="endless"), fork(http, "r", 2)
        until(lambda: int(str(detail(http, child)["n_events"])) > 5, "it is at work")
        server.kill()

    async with open_store(url) as found, run_journal(found) as journal:
        closed = await journal.close_silent(timedelta(0))
        seqs = [entry.seq async for entry in journal.stream(run_id=child)]
        open_runs = {run.run_id for run in await journal.live_runs()}

    assert (closed, seqs) == ([child], [*range(1, len(seqs) + 1)])
    assert open_runs == {"r", idle}


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
async def test_a_child_reads_alike_through_a_broker_and_over_sse(
    request: pytest.FixtureRequest, start: Start, tmp_path: Path, store: str
) -> None:
    url = url_of(store, with_players(tmp_path), request)
    with start(url, *PLAYERS).client() as http:
        publish(http, "r", *range(4))
        child = fork(http, "r", 3, producer="counter", n_turns=2)
        over_sse = payloads(http, child)

    async with JournalBroker(url) as broker:
        found = [envelope async for envelope in broker.stream(RunId(child))]

    assert [(envelope.seq, envelope.event.type, envelope.event.payload) for envelope in found] == over_sse
    assert {envelope.run_id for envelope in found} == {child}


def test_a_server_that_leaves_cancels_its_replays_and_closes_their_children(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{with_players(tmp_path)}/tape.db"
    first = start(store, *PLAYERS)
    with first.client() as http:
        publish(http, "r", 1)
        child = fork(http, "r", 1, producer="endless")
        until(lambda: int(str(detail(http, child)["n_events"])) > 5, "it is at work")
        first.signal(signal.SIGTERM)
        assert first.wait() == 0

    with start(store).client() as http:
        *_, last = payloads(http, child)

        assert last[1:] == ("cancelled", {"reason": "the server that replayed it is shutting down"})
        assert detail(http, child)["status"] == "complete" and detail(http, "r")["status"] == "running"


def test_a_producer_that_hears_nothing_does_not_hold_a_leaving_server_up(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{with_players(tmp_path)}/tape.db", *PLAYERS)
    with server.client() as http:
        publish(http, "r", 1)
        fork(http, "r", 1, producer="deaf")
        until((tmp_path / "deaf.txt").exists, "it is at work")
        server.signal(signal.SIGTERM)

        assert server.wait() == 0


def test_a_child_closed_from_elsewhere_stops_its_producer(server: TapeServer, http: httpx.Client, run_id: str) -> None:
    (server.folder / "ended.txt").unlink(missing_ok=True)
    publish(http, run_id, 1)
    child = fork(http, run_id, 1, producer="endless")
    until(lambda: int(str(detail(http, child)["n_events"])) > 5, "it is at work")

    http.post(f"/runs/{child}/close").raise_for_status()

    until(lambda: (server.folder / "ended.txt").exists(), "its thread has ended")
    assert payloads(http, child)[-1][1] == "turn"
