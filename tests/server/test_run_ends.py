"""How a run's stream ends, on every store: with `run_end`, and not when a gateway ends the response."""

from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest

from tape.sdk.client import AsyncClient
from tape.wire.frames import Checkpoint, Delivered, RunEnd, StateResyncRequired
from tests.contract.events import upto
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.reading import ids, open_stream, publish
from tests.server.server import TapeServer, begin_epoch
from tests.server.test_cold_streams import close_and_reap
from tests.servers.gateway import Gateway, gateway


async def _until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - nothing tells us
            await anyio.sleep(0.01)


async def _end_streams_at(between: Gateway, is_so: Callable[[], bool]) -> None:
    """Ends the one stream that passes, once a condition holds."""
    await _until(lambda: is_so() and between.open_streams == 1)
    between.end_streams()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # the client decides it; it knows no store
async def test_a_response_that_a_gateway_ends_cleanly_is_not_the_end_of_a_run(
    server: TapeServer, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1, 2)
    read: list[object] = []

    async def follow(client: AsyncClient) -> None:
        async for event in client.events(run_id=run_id):
            read.append(event.payload if isinstance(event, Delivered) else type(event))

    async with (
        gateway(server.port) as between,
        AsyncClient(f"http://127.0.0.1:{between.port}") as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(follow, client)
        await _end_streams_at(between, lambda: 2 in read)
        publish(http, run_id, 3)
        await _end_streams_at(between, lambda: 3 in read)
        publish(http, run_id, 4)
        http.post(f"/runs/{run_id}/close")
        await _until(lambda: RunEnd in read)

    assert [payload for payload in read if isinstance(payload, int)] == [1, 2, 3, 4]
    assert read[-1] is RunEnd


def test_p7_a_runs_stream_ends_with_one_run_end_frame(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2)

    with open_stream(http, "/events", run_id=run_id) as live:
        live.ids(2)
        http.post(f"/runs/{run_id}/close")
        frames = live.rest()
    with open_stream(http, "/events", run_id=run_id) as late:
        again = late.rest()

    end = RunEnd(reason="closed", last_event_id=2, state="complete")
    assert frames[-1] == again[-1] == end
    assert [type(frame) for frame in (*frames, *again)].count(RunEnd) == 2


def test_run_end_has_its_fields_beside_its_type(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)
    http.post(f"/runs/{run_id}/close")

    text = http.get("/events", params={"run_id": run_id}).text

    facts = '{"type":"run_end","v":1,"reason":"closed","lastEventId":1,"state":"complete"}'
    assert text.endswith(f"event: run_end\ndata: {facts}\n\n")


@pytest.mark.parametrize("path", ["/events?run_id={}", "/session/{}/events"])
@pytest.mark.parametrize("cursor", [{"from_seq": "4"}, {"last-event-id": "3"}])
def test_a_cursor_at_the_end_is_204_while_the_run_is_closed(
    http: httpx.Client, run_id: str, path: str, cursor: dict[str, str]
) -> None:
    publish(http, run_id, 1, 2, 3)
    http.post(f"/runs/{run_id}/close")
    query, headers = ({}, cursor) if "last-event-id" in cursor else (cursor, {})
    request = http.build_request("GET", path.format(run_id), headers=headers)
    request.url = request.url.copy_merge_params(query)

    closed = http.send(request)
    http.post("/runs", json={"run_id": run_id}).raise_for_status()
    publish(http, run_id, 4)

    assert (closed.status_code, closed.content) == (204, b"")
    assert closed.headers["x-tape-epoch"] == str(http.get("/capabilities").json()["epoch"])
    with open_stream(http, request.url.path, headers, **dict(request.url.params)) as listener:
        assert listener.ids(1) == [4]


@pytest.mark.parametrize("cursor", ["0", "2", "50"])
def test_a_cursor_elsewhere_is_never_204(http: httpx.Client, run_id: str, cursor: str) -> None:
    publish(http, run_id, 1, 2, 3)
    http.post(f"/runs/{run_id}/close")

    with open_stream(http, "/events", {"last-event-id": cursor}, run_id=run_id) as listener:
        frames = listener.rest()

    resets = [frame.reason for frame in frames if isinstance(frame, StateResyncRequired)]
    assert resets == (["epoch_reset"] if cursor == "50" else [])
    assert ids(frames) == upto(3, first=3 if cursor == "2" else 1) and isinstance(frames[-1], RunEnd)


def test_a_cursor_of_another_epoch_is_reset_although_its_number_is_the_end(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2, 3)
    http.post(f"/runs/{run_id}/close")

    with open_stream(http, "/events", {"last-event-id": "3", "x-tape-epoch": "7"}, run_id=run_id) as listener:
        frames = listener.rest()

    assert isinstance(frames[0], StateResyncRequired) and ids(frames) == [1, 2, 3]


@pytest.mark.parametrize("store_url", ["sqlite", "postgres", "redis"], indirect=True)
def test_a_cursor_of_the_epoch_before_is_reset_right_after_a_new_one_began(
    server: TapeServer, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1, 2, 3)
    http.post(f"/runs/{run_id}/close")
    old = str(http.get("/capabilities").json()["epoch"])
    begin_epoch(server)

    with open_stream(http, "/events", {"last-event-id": "3", "x-tape-epoch": old}, run_id=run_id) as listener:
        frames = listener.rest()

    assert isinstance(frames[0], StateResyncRequired) and ids(frames) == [1, 2, 3]


def test_a_run_that_never_had_an_event_ends_at_0_and_is_204_from_there(http: httpx.Client, run_id: str) -> None:
    http.post("/runs", json={"run_id": run_id}).raise_for_status()
    http.post(f"/runs/{run_id}/close")

    with open_stream(http, "/events", run_id=run_id) as listener:
        frames = listener.rest()
    again = http.get("/events", params={"run_id": run_id}, headers={"last-event-id": "0"})

    assert frames[-2:] == [Checkpoint(0), RunEnd(reason="closed", last_event_id=0, state="complete")]
    assert again.status_code == 204


@pytest.mark.parametrize("is_live", [True, False])
def test_a_filtered_stream_ends_with_a_cursor_at_the_end(http: httpx.Client, run_id: str, is_live: bool) -> None:
    publish(http, run_id, 1, 2)
    if not is_live:
        http.post(f"/runs/{run_id}/close")

    with open_stream(http, "/events", run_id=run_id, where="payload == 1") as listener:
        listener.ids(1)
        if is_live:
            publish(http, run_id, 3)
            http.post(f"/runs/{run_id}/close")
        frames = listener.rest()

    last = 3 if is_live else 2
    checkpoints = [frame for frame in frames if isinstance(frame, Checkpoint)]
    assert checkpoints[-1] == Checkpoint(last)
    assert frames[-1] == RunEnd(reason="closed", last_event_id=last, state="complete")


def test_a_fork_ends_like_any_run(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2)
    child = http.post("/forks", json={"parent_run_id": run_id, "at_seq": 2}).json()["child_run_id"]
    http.post(f"/runs/{child}/close")

    with open_stream(http, "/events", run_id=child) as listener:
        frames = listener.rest()
    again = http.get("/events", params={"run_id": child}, headers={"last-event-id": "3"})

    assert frames[-1] == RunEnd(reason="closed", last_event_id=3, state="complete")
    assert again.status_code == 204


def test_a_run_that_only_its_file_has_ends_as_reaped(start: Start, run_id: str) -> None:
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, run_id, 1, 2, 3)
        close_and_reap(http, run_id)
        with open_stream(http, "/events", run_id=run_id) as listener:
            frames = listener.rest()
        with open_stream(http, f"/session/{run_id}/events") as from_now_on:
            nothing = from_now_on.rest()
        again = http.get(f"/session/{run_id}/events", headers={"last-event-id": "3"})

    end = RunEnd(reason="reaped", last_event_id=3, state="complete")
    assert ids(frames) == [1, 2, 3] and frames[-1] == end
    assert nothing == [Checkpoint(3), end]
    assert again.status_code == 204


def test_a_run_of_an_earlier_process_that_only_its_file_has_ends_as_reaped(start: Start, run_id: str) -> None:
    first = start("memory://")
    with first.client() as http:
        publish(http, run_id, 1, 2)
        assert first.stop() == 0

    with start("memory://").client() as http, open_stream(http, "/events", run_id=run_id) as listener:
        frames = listener.rest()
        again = http.get("/events", params={"run_id": run_id}, headers={"last-event-id": "2"})

    assert frames[-1] == RunEnd(reason="reaped", last_event_id=2, state="complete")
    assert again.status_code == 204


async def test_run_end_has_the_state_of_the_ledger(start: Start, tmp_path: Path) -> None:
    from tape import aconnect
    from tape.core.run_state import RunStatus

    store = f"sqlite:///{tmp_path}/tape.db"
    server = start(store)
    async with aconnect(store) as node:
        run_id = (await node.runs.begin("app", "ann", "s", "1", owner="worker")).run.run_id
        await node.runs.end(run_id, RunStatus.FAILED)

    with server.client() as http, open_stream(http, "/events", run_id=run_id) as listener:
        last = listener.rest()[-1]

    assert isinstance(last, RunEnd) and last.state == "failed"
