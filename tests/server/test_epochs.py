"""A new epoch under a running server: the server continues, and every open stream gets a resync."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tape.wire.frames import Delivered, Frame, ReplayComplete, StateResyncRequired
from tests.server.conftest import Start
from tests.server.reading import Listener, ids, open_stream, publish
from tests.server.server import TapeServer, begin_epoch


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def server(request: pytest.FixtureRequest, start: Start, tmp_path: Path) -> TapeServer:
    """A server of its own on each store that can change its epoch."""
    if request.param == "sqlite":
        return start(f"sqlite:///{tmp_path}/tape.db")
    return start(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def epoch_of(http: httpx.Client) -> int:
    return int(http.get("/capabilities").json()["epoch"])


def after_resync(frames: list[Frame]) -> list[Frame]:
    """The frames after the resync."""
    places = [place for place, frame in enumerate(frames) if isinstance(frame, StateResyncRequired)]
    return frames[places[0] + 1 :] if places else []


def after_resync_ids(listener: Listener, count: int) -> list[int]:
    """The ids of so many entries after the resync."""
    return ids(after_resync(listener.until(lambda frames: len(ids(after_resync(frames))) >= count)))


def test_an_open_stream_of_a_run_gets_a_resync_and_a_replay_from_the_floor(
    server: TapeServer, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1, 2, 3)
    before = epoch_of(http)

    with open_stream(http, "/events", run_id=run_id) as listener:
        listener.first(ReplayComplete)
        begin_epoch(server)
        resync = listener.first(StateResyncRequired)
        assert publish(http, run_id, 4) == [4]

        assert after_resync_ids(listener, 4) == [1, 2, 3, 4]
    epoch = epoch_of(http)
    assert epoch > before
    assert resync == StateResyncRequired(
        reason="epoch_reset", last_delivered_id=3, earliest_available_id=1, epoch=epoch
    )


@pytest.mark.parametrize("query", [{}, {"subject": "/tape/event/**"}])
def test_an_open_stream_across_runs_gets_a_resync_and_resumes_at_the_head(
    server: TapeServer, http: httpx.Client, run_id: str, query: dict[str, str]
) -> None:
    publish(http, run_id, 1, 2, 3)

    with open_stream(http, "/events", from_global_seq=1, **query) as listener:  # type: ignore[arg-type]
        listener.first(ReplayComplete)
        begin_epoch(server)
        resync = listener.first(StateResyncRequired)
        publish(http, run_id, 4)

        assert after_resync_ids(listener, 1) == [4]
    assert isinstance(resync, StateResyncRequired)
    assert (resync.reason, resync.last_delivered_id, resync.earliest_available_id) == ("epoch_reset", 3, 4)


def test_a_cursor_of_an_old_epoch_gets_a_resync_and_one_of_the_new_does_not(
    server: TapeServer, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1, 2, 3)
    old = {"last-event-id": "2", "x-tape-epoch": str(epoch_of(http))}
    begin_epoch(server)

    with open_stream(http, "/events", old, run_id=run_id) as listener:
        listener.first(ReplayComplete)
    new = {"last-event-id": "2", "x-tape-epoch": str(epoch_of(http))}
    with open_stream(http, "/events", new, run_id=run_id) as again:
        again.first(ReplayComplete)

    resyncs = [frame for frame in listener.frames if isinstance(frame, StateResyncRequired)]
    assert [frame.reason for frame in resyncs] == ["epoch_reset"] and ids(listener.frames) == [1, 2, 3]
    assert ids(again.frames) == [3] and not after_resync(again.frames)


def test_every_open_stream_gets_one_resync_per_epoch(server: TapeServer, http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)

    with open_stream(http, "/events", run_id=run_id) as one, open_stream(http, "/events", run_id=run_id) as other:
        for turn in (1, 2):
            for listener in (one, other):
                listener.until(lambda frames, turn=turn: len(ids(frames)) >= turn)  # type: ignore[misc]
            begin_epoch(server)
        resyncs = [after_resync_ids(listener, 2) for listener in (one, other)]

    assert resyncs == [[1, 1], [1, 1]]
    for listener in (one, other):
        assert [type(frame) for frame in listener.frames if not isinstance(frame, ReplayComplete)] == [
            Delivered, StateResyncRequired, Delivered, StateResyncRequired, Delivered,
        ]  # fmt: skip


def test_a_lost_data_set_is_a_new_epoch_and_its_runs_start_over(start: Start, redis_url: str, run_id: str) -> None:
    server = start(redis_url)
    with server.client() as http, redis.Redis.from_url(redis_url) as client:
        publish(http, run_id, 1, 2, 3)
        with open_stream(http, "/events", run_id=run_id) as listener, open_stream(http, "/events") as across:
            listener.first(ReplayComplete)
            client.flushall()
            resyncs = [listener.first(StateResyncRequired), across.first(StateResyncRequired)]
            assert publish(http, run_id, "a", "b") == [1, 2]

            assert after_resync_ids(listener, 2) == after_resync_ids(across, 2) == [1, 2]

    assert [(word.reason, word.earliest_available_id) for word in resyncs] == [("epoch_reset", 1)] * 2  # type: ignore[union-attr]


def test_a_repeated_append_has_an_epoch_that_its_positions_are_read_in(
    server: TapeServer, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1)
    first = append_once(http, run_id)
    begin_epoch(server)
    publish(http, run_id, 3)

    again = append_once(http, run_id)
    place = {"after": again["entries"][0]["seq"], "epoch": again["epoch"]}
    page = http.get(f"/runs/{run_id}/events", params=place)

    assert (again["entries"], again["epoch"]) == (first["entries"], epoch_of(http))
    assert [entry["data"] for entry in page.json()["entries"]] == [3]


def append_once(http: httpx.Client, run_id: str) -> Any:
    answer = http.post(f"/runs/{run_id}/events", json={"payload": 2}, headers={"idempotency-key": run_id})
    assert answer.status_code == 201
    return answer.json()
