"""Streams of reaped runs from their files: the same as from the store."""

from pathlib import Path
from typing import Any

import duckdb
import httpx

from tape.lake.cold.runs import cold_path
from tape.lake.file_lock import exclusive_lock
from tape.store.duckdb.connection import open_to_write
from tape.store.duckdb.events import Events
from tape.wire.frames import Checkpoint, Delivered, Frame, StateResyncRequired
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.reading import ids, open_stream, publish


def close_and_reap(http: httpx.Client, run_id: str) -> None:
    """Ends a run and waits until only its file has it."""
    http.post(f"/runs/{run_id}/close").raise_for_status()
    until(lambda: http.get(f"/runs/{run_id}").json()["is_reaped"] is True, "the run is let go of")


def read_to_end(http: httpx.Client, run_id: str, last_id: str | None = None, **query: object) -> list[Frame]:
    """A run that has ended, to its end."""
    with open_stream(
        http, "/events", {"last-event-id": last_id} if last_id else None, run_id=run_id, **query
    ) as listener:
        return listener.rest()


def payloads(frames: list[Frame]) -> list[object]:
    return [frame.payload for frame in frames if isinstance(frame, Delivered)]


def test_a_file_is_filtered_like_the_journal(start: Start, run_id: str) -> None:
    queries: list[dict[str, Any]] = [{"subject": "/number/odd"}, {"where": "payload % 2 == 1"}]
    with start("memory://", "--reap-after", "1s").client() as http:
        http.post("/runs", json={"run_id": run_id})
        events = [{"payload": n, "subject": f"/number/{'odd' if n % 2 else 'even'}"} for n in range(600)]
        http.post(f"/runs/{run_id}/events", json=events).raise_for_status()
        close_and_reap(http, run_id)
        answers = [read_to_end(http, run_id, **query) for query in queries]

    assert [payloads(frames) for frames in answers] == [list(range(1, 600, 2))] * 2
    assert [frame for frames in answers for frame in frames if isinstance(frame, Checkpoint)] == []


def test_an_invalid_filter_of_a_file_is_refused(start: Start, run_id: str) -> None:
    queries: list[dict[str, str]] = [{"subject": "no-slash"}, {"where": "payload.n >"}]
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, run_id, 1)
        close_and_reap(http, run_id)

        assert [http.get("/events", params={"run_id": run_id} | query).status_code for query in queries] == [400, 400]


def test_a_cursor_beyond_a_file_is_an_epoch_reset_and_all_is_replayed(start: Start, run_id: str) -> None:
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, run_id, 1, 2, 3)
        close_and_reap(http, run_id)
        beyond = read_to_end(http, run_id, "50")
        at_the_end = http.get("/events", params={"run_id": run_id}, headers={"last-event-id": "3"})

    resync = StateResyncRequired(reason="epoch_reset", last_delivered_id=50, earliest_available_id=1)
    assert beyond[0] == resync and ids(beyond) == [1, 2, 3]
    assert at_the_end.status_code == httpx.codes.NO_CONTENT


def test_a_run_that_ended_again_is_not_read_from_the_file_of_its_earlier_incarnation(start: Start, run_id: str) -> None:
    with start("memory://", "--reap-after", "1s").client() as http:
        publish(http, run_id, 1, 2, 3)
        close_and_reap(http, run_id)
        http.post("/runs", json={"run_id": run_id})
        publish(http, run_id, 4, 5)
        http.post(f"/runs/{run_id}/close")
        frames = read_to_end(http, run_id)

    assert payloads(frames)[-2:] == [4, 5]


def test_a_file_of_another_journal_is_not_read_for_a_run_of_the_same_name(start: Start, run_id: str) -> None:
    first = start("memory://")
    with first.client() as http:
        publish(http, run_id, "theirs", "theirs")
        assert first.stop() == 0

    with start("memory://").client() as http:
        publish(http, run_id, "ours", "ours")
        http.post(f"/runs/{run_id}/close")
        assert payloads(read_to_end(http, run_id)) == ["ours", "ours"]


def leave_in_a_file(start: Start, run_id: str, *payloads: object) -> str:
    """Publishes a run on a server that ends; returns the epoch of its journal."""
    server = start("memory://")
    with server.client() as http:
        publish(http, run_id, *payloads)
        with open_stream(http, "/events", run_id=run_id) as listener:
            assert server.stop() == 0
            return listener.headers["x-tape-epoch"]


def test_a_file_has_the_epoch_of_its_entries_in_the_next_journal(start: Start, run_id: str) -> None:
    epoch = leave_in_a_file(start, run_id, 1, 2, 3)
    with start("memory://").client() as http:
        journal = http.get("/capabilities").json()["epoch"]
        with open_stream(http, "/events", run_id=run_id) as listener:
            listener.rest()
        headers = {"last-event-id": "3", "x-tape-epoch": epoch}
        at_end = http.get("/events", params={"run_id": run_id}, headers=headers)
        rest = read_to_end(http, run_id, "2", epoch=epoch)
        shown = http.get(f"/runs/{run_id}").json()

    assert (listener.headers["x-tape-epoch"], str(shown["epoch"])) == (epoch, epoch)
    assert (at_end.status_code, at_end.headers["x-tape-epoch"]) == (204, epoch) and str(journal) != epoch
    assert ids(rest) == [3] and not any(isinstance(frame, StateResyncRequired) for frame in rest)


def test_a_cursor_of_a_file_is_an_epoch_reset_in_a_run_of_the_same_name(start: Start, run_id: str) -> None:
    resync = StateResyncRequired(reason="epoch_reset", last_delivered_id=3, earliest_available_id=1)
    epoch = leave_in_a_file(start, run_id, 1, 2, 3)
    with start("memory://").client() as http:
        with open_stream(http, "/events", run_id=run_id) as listener:
            listener.rest()
        read = listener.headers["x-tape-epoch"]
        http.post("/runs", json={"run_id": run_id})
        publish(http, run_id, "new", "new", "new", "new")
        with open_stream(http, "/events", {"last-event-id": "3", "x-tape-epoch": read}, run_id=run_id) as listener:
            listener.until(bool)
            assert listener.frames[0] == resync
            listener.ids(4)

    assert payloads(listener.frames) == ["new"] * 4
    assert (read, listener.headers["x-tape-epoch"] != epoch) == (epoch, True)


async def test_a_file_that_is_being_written_is_503_and_not_opened(start: Start, tmp_path: Path, run_id: str) -> None:
    paths = [f"/events?run_id={run_id}", f"/session/{run_id}/events", f"/runs/{run_id}"]
    first = start("memory://")
    with first.client() as http:
        publish(http, run_id, 1)
        assert first.stop() == 0

    async with exclusive_lock(cold_path(tmp_path, run_id)):
        with start("memory://").client() as http:
            answers = [http.get(path) for path in paths]

    assert [(refused.status_code, refused.headers["retry-after"]) for refused in answers] == [(503, "1")] * 3


def test_a_file_without_its_run_is_404_until_the_run_is_there(start: Start, tmp_path: Path, run_id: str) -> None:
    """What a kill leaves between a file's tables and its first row."""
    open_to_write(cold_path(tmp_path, run_id), lambda connection: Events(connection).create()).close()
    paths = [f"/events?run_id={run_id}", f"/session/{run_id}/events", f"/runs/{run_id}", f"/runs/{run_id}/events"]
    with start("memory://", "--reap-after", "1s").client() as http:
        answers = [http.get(path) for path in paths]
        publish(http, run_id, 1, 2)
        close_and_reap(http, run_id)
        frames = read_to_end(http, run_id)

    assert [missing.status_code for missing in answers] == [404] * 4
    assert payloads(frames) == [1, 2]


def test_a_file_that_is_open_elsewhere_is_503(start: Start, tmp_path: Path, run_id: str) -> None:
    leave_in_a_file(start, run_id, 1)
    paths = [f"/events?run_id={run_id}", f"/runs/{run_id}", f"/runs/{run_id}/events"]
    with duckdb.connect(cold_path(tmp_path, run_id)), start("memory://").client() as http:
        answers = [http.get(path) for path in paths]

    assert [(refused.status_code, refused.headers["retry-after"]) for refused in answers] == [(503, "1")] * 3
