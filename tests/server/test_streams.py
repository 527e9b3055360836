"""Streams over HTTP, on every store."""

import httpx
import pytest

from tape.wire.frames import Checkpoint, Delivered, ReplayComplete, StateResyncRequired
from tests.contract.events import upto
from tests.server.conftest import Start
from tests.server.reading import Listener, ids, open_stream, publish
from tests.server.server import TapeServer


def test_a_run_is_replayed_then_followed_then_ends(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2, 3)

    with open_stream(http, "/events", run_id=run_id) as listener:
        listener.first(ReplayComplete)
        publish(http, run_id, 4)
        listener.ids(4)
        http.post(f"/runs/{run_id}/close")
        frames = listener.rest()

    assert [frame.payload for frame in frames if isinstance(frame, Delivered)] == [1, 2, 3, 4]
    assert frames[3] == ReplayComplete(replayed_count=3, last_event_id=3)


@pytest.mark.parametrize("cursor", [{"from_seq": "4"}, {"headers": {"last-event-id": "3"}}])
def test_a_stream_begins_after_its_cursor(http: httpx.Client, run_id: str, cursor: dict[str, object]) -> None:
    publish(http, run_id, *range(1, 6))

    with open_stream(http, "/events", run_id=run_id, **cursor) as listener:  # type: ignore[arg-type]
        assert listener.ids(2) == [4, 5]


def test_the_header_wins_over_the_url(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, *range(1, 6))

    with open_stream(http, "/events", {"last-event-id": "4"}, run_id=run_id, from_seq="1") as listener:
        assert listener.ids(1) == [5]


def test_a_session_stream_begins_now(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2)

    with open_stream(http, f"/session/{run_id}/events") as listener:
        publish(http, run_id, 3)
        listener.ids(1)

    assert [frame for frame in listener.frames if not isinstance(frame, Delivered)] == [Checkpoint(2)]
    assert ids(listener.frames) == [3]


def test_subjects_are_streamed_across_runs_by_global_seq(http: httpx.Client, run_id: str) -> None:
    first, second = f"{run_id}-1", f"{run_id}-2"
    publish(http, first, 1)
    publish(http, second, 1)

    with open_stream(http, "/events", subject=f"/orders/{run_id}/*", where="payload.n > 1") as listener:
        for run, n in ((first, 1), (second, 2), (first, 3)):
            http.post(f"/runs/{run}/events", json={"payload": {"n": n}, "subject": f"/orders/{run_id}/x"})
            publish(http, run, {"n": n})
        listener.ids(2)

    found = [frame for frame in listener.frames if isinstance(frame, Delivered)]
    assert [(frame.run_id, frame.payload["n"]) for frame in found] == [(second, 2), (first, 3)]
    assert all(frame.id == frame.global_seq for frame in found)


def test_a_filtered_reader_resumes_after_its_checkpoint(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, *range(10))
    head = int(http.get("/ready").json()["head"])

    with open_stream(http, "/events", subject="/nobody/says/this", from_global_seq="0") as listener:
        listener.first(ReplayComplete)

    assert Checkpoint(head) in listener.frames
    assert listener.frames[-1] == ReplayComplete(replayed_count=0, last_event_id=head)


def test_the_headers_have_the_epoch_and_forbid_buffering(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1)

    with open_stream(http, "/events", run_id=run_id) as listener:
        headers = listener.headers

    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["x-accel-buffering"] == "no"
    assert "no-store" in headers["cache-control"]
    assert int(headers["x-tape-epoch"]) == http.get("/capabilities").json()["epoch"]


def test_a_cursor_with_the_right_epoch_resumes(http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2, 3)
    epoch = http.get("/capabilities").json()["epoch"]

    with open_stream(http, "/events", {"last-event-id": "2", "x-tape-epoch": str(epoch)}, run_id=run_id) as listener:
        listener.first(ReplayComplete)

    assert ids(listener.frames) == [3]
    assert not any(isinstance(frame, StateResyncRequired) for frame in listener.frames)


@pytest.mark.parametrize("options", [{"headers": {"x-tape-epoch": "7"}}, {"epoch": "7"}])
def test_a_cursor_of_another_journal_starts_over_however_plausible(
    http: httpx.Client, run_id: str, options: dict[str, object]
) -> None:
    publish(http, run_id, 1, 2, 3)

    with open_stream(http, "/events", run_id=run_id, from_seq="3", **options) as listener:  # type: ignore[arg-type]
        listener.first(ReplayComplete)

    resync = StateResyncRequired(reason="epoch_reset", last_delivered_id=2, earliest_available_id=1)
    assert listener.frames[0] == resync
    assert ids(listener.frames) == [1, 2, 3]


@pytest.mark.parametrize(("path", "expected"), [("/session/{}/events", [3]), ("/events?run_id={}", [1, 2, 3])])
def test_an_epoch_without_a_cursor_means_nothing(
    http: httpx.Client, run_id: str, path: str, expected: list[int]
) -> None:
    publish(http, run_id, 1, 2)

    with http.stream("GET", path.format(run_id), headers={"x-tape-epoch": "7"}) as response:
        listener = Listener(response)
        publish(http, run_id, 3)
        assert listener.ids(len(expected)) == expected

    assert not any(isinstance(frame, StateResyncRequired) for frame in listener.frames)


@pytest.mark.parametrize("cursor", ["", "abc", "-1", "1.5", "1e3", "9007199254740992", "١", "1x", "9" * 10_000])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # no store is asked
def test_a_malformed_cursor_is_refused_before_the_handshake(http: httpx.Client, run_id: str, cursor: str) -> None:
    publish(http, run_id, 1)

    answer = http.get("/events", params={"run_id": run_id}, headers=[(b"last-event-id", cursor.encode())])

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


@pytest.mark.parametrize("epoch", ["x" * 65, "a b", "-1"])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # no store is asked
def test_a_malformed_epoch_is_refused(http: httpx.Client, run_id: str, epoch: str) -> None:
    publish(http, run_id, 1)

    answer = http.get("/events", params={"run_id": run_id}, headers={"last-event-id": "0", "x-tape-epoch": epoch})

    assert answer.status_code == 400


@pytest.mark.parametrize("max_queued", ["", "x", "15", "2049", "1e2"])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # no store is asked
def test_a_cap_out_of_bounds_is_refused_before_the_handshake(http: httpx.Client, run_id: str, max_queued: str) -> None:
    publish(http, run_id, 1)

    answer = http.get("/events", params={"run_id": run_id, "maxQueued": max_queued})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_max_queued")


@pytest.mark.parametrize("max_queued", ["16", "2048"])
def test_a_cap_at_its_bounds_is_accepted(http: httpx.Client, run_id: str, max_queued: str) -> None:
    publish(http, run_id, 1)

    with open_stream(http, "/events", run_id=run_id, maxQueued=max_queued) as listener:
        assert listener.ids(1) == [1]


@pytest.mark.parametrize("query", [{"subject": "no-slash"}, {"where": "payload.n >"}, {"slow": "maybe"}])
def test_an_invalid_stream_is_refused_before_the_handshake(http: httpx.Client, query: dict[str, str]) -> None:
    answer = http.get("/events", params=query)

    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/events?run_id=nobody", "/session/nobody/events"])
def test_an_unknown_run_is_not_found(http: httpx.Client, path: str) -> None:
    answer = http.get(path)

    assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")


def test_the_sixty_fifth_reader_of_a_run_gets_retry_after(server: TapeServer, run_id: str) -> None:
    with server.client(limits=httpx.Limits(max_connections=None)) as http:
        publish(http, run_id, 1)
        streams = [http.stream("GET", "/events", params={"run_id": run_id}) for _ in range(64)]
        answers = [stream.__enter__() for stream in streams]
        refused = http.get("/events", params={"run_id": run_id})
        for stream in streams:
            stream.__exit__(None, None, None)

    assert {answer.status_code for answer in answers} == {200}
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert refused.json()["code"] == "subscriber_limit_exceeded"


def test_a_gap_of_a_small_ring_is_a_resync_before_the_entries(start: Start, run_id: str) -> None:
    with start("memory://", "--event-ring-size", "3").client() as http:
        publish(http, run_id, *range(1, 6))

        with open_stream(http, "/events", {"last-event-id": "1"}, run_id=run_id) as listener:
            listener.first(ReplayComplete)
            publish(http, run_id, 6)
            listener.ids(4)

    assert listener.frames[0] == StateResyncRequired(
        reason="ring_evicted", last_delivered_id=1, earliest_available_id=3
    )
    assert ids(listener.frames) == upto(6, first=3)
