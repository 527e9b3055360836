"""Run maintenance of a server: ended runs of a bounded store are copied to files and reaped."""

import signal
import time
from pathlib import Path

import httpx
import pytest

from tape.compose import open_journal, open_store
from tape.core.ids import RunId
from tape.core.lease import GONE
from tape.core.run import RunMeta
from tests.contract.ageing import age
from tests.contract.backends import Backend
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.server import TapeServer


@pytest.fixture(params=["memory", "redis"])
def forgetful(request: pytest.FixtureRequest) -> str:
    """A store that does not keep everything."""
    return "memory://" if request.param == "memory" else str(request.getfixturevalue("redis_url"))


def write(http: httpx.Client, run_id: str, events: int) -> None:
    http.post("/runs", json={"run_id": run_id, "label": "kept"})
    for _ in range(events // 100):
        http.post(f"/runs/{run_id}/events", json=[{"payload": {"n": n}} for n in range(100)])


def frames(http: httpx.Client, run_id: str) -> list[str]:
    text = http.get("/events", params={"run_id": run_id}).text
    return [line for line in text.splitlines() if line.startswith('data: {"id"')]


def detail(http: httpx.Client, run_id: str) -> dict[str, object]:
    answer = http.get(f"/runs/{run_id}")
    return dict(answer.json()) if answer.status_code == 200 else {}


def test_a_reaped_run_is_served_from_its_file_with_the_same_bytes(start: Start, forgetful: str) -> None:
    server = start(forgetful, "--reap-after", "1s")
    with server.client() as http:
        write(http, "r", 300)
        http.post("/runs/r/close")
        live = frames(http, "r")
        until(lambda: detail(http, "r").get("is_reaped") is True, "the run is let go of")
        cold = frames(http, "r")
        listed = [run for run in http.get("/runs").json()["runs"] if run["run_id"] == "r"]

    assert len(live) == 300 and cold == live
    assert listed == [{"run_id": "r", "label": "kept", "started_at": None, "n_events": 300, "status": "complete"}]


def test_an_open_run_is_never_reaped(start: Start, forgetful: str) -> None:
    server = start(forgetful, "--reap-after", "1s")
    with server.client() as http:
        write(http, "open", 100)
        write(http, "closed", 100)
        http.post("/runs/closed/close")
        until(lambda: detail(http, "closed").get("is_reaped") is True, "the closed run is let go of")

        assert (detail(http, "open")["status"], detail(http, "open")["is_reaped"]) == ("running", False)


def test_a_run_that_cannot_be_copied_is_not_reaped(start: Start, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("something is in the way")
    server = start("memory://", "--reap-after", "1s")
    with server.client() as http:
        write(http, "r", 100)
        http.post("/runs/r/close")
        until(lambda: server.log.count("run.copy_failed") >= 4, "it was tried again and again, and was due long ago")

        assert detail(http, "r")["is_reaped"] is False
        assert len(frames(http, "r")) == 100


def test_a_reopened_run_is_listed_once_as_running(start: Start, forgetful: str) -> None:
    server = start(forgetful, "--reap-after", "1s")
    with server.client() as http:
        write(http, "r", 100)
        http.post("/runs/r/close")
        until(lambda: detail(http, "r").get("is_reaped") is True, "the run is let go of")
        opened = http.post("/runs", json={"run_id": "r"})
        listed = [run["status"] for run in http.get("/runs").json()["runs"] if run["run_id"] == "r"]

    assert (opened.status_code, listed) == (201, ["running"])


def test_runs_in_memory_are_in_files_after_shutdown(start: Start) -> None:
    first = start("memory://")
    with first.client() as http:
        write(http, "r", 200)
        live = http.get("/runs/r").json()
        first.signal(signal.SIGTERM)
        assert first.wait() == 0
    second = start("memory://")

    with second.client() as http:
        assert (detail(http, "r")["status"], detail(http, "r")["n_events"]) == ("complete", live["n_events"])
        assert len(frames(http, "r")) == 200


def test_the_files_are_named_by_hash_in_the_data_folder(start: Start, tmp_path: Path) -> None:
    server = start("memory://")
    with server.client() as http:
        write(http, "r", 100)
        until(lambda: any((tmp_path / "runs").glob("*.duckdb")), "there is a file")

    names = {path.name.partition(".")[0] for path in (tmp_path / "runs").iterdir()}
    assert all(len(name) == 64 and set(name) <= set("0123456789abcdef") for name in names)
    assert not any(path.stat().st_mode & 0o077 for path in (tmp_path / "runs", *(tmp_path / "runs").iterdir()))


def test_a_durable_store_reaps_nothing(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/tape.db", "--reap-after", "1s")
    with server.client() as http:
        write(http, "r", 100)
        http.post("/runs/r/close")
        closed_at = int(str(detail(http, "r")["closed_at_ms"]))
        until(lambda: time.time() * 1000 > closed_at + 3000, "three rounds have passed")

        assert detail(http, "r")["is_reaped"] is False
    assert not (tmp_path / "runs").exists()


async def test_the_server_closes_a_run_with_an_expired_lease(start: Start, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tape.db"
    async with open_store(url) as store:
        for run_id, producer in (("silent", "p1"), ("nobodys", None)):
            await store.runs.open(RunId(run_id), RunMeta(), producer)
        await age(Backend("sqlite", url), store, GONE)

    with start(url).client() as http:
        until(lambda: detail(http, "silent")["status"] == "complete", "the silent run is ended")

        assert detail(http, "nobodys")["status"] == "running"


async def test_a_run_of_another_process_is_listed_too(start: Start, redis_url: str) -> None:
    server = start(redis_url)
    async with open_journal(redis_url) as journal:
        await journal.open_run("theirs")

        assert "theirs" in httpx.get(f"{server.url}/runs", trust_env=False).text


def test_a_ring_size_is_what_a_run_keeps(start: Start) -> None:
    server = start("memory://", "--event-ring-size", "50")
    with server.client() as http:
        write(http, "r", 200)

        assert (detail(http, "r")["floor"], detail(http, "r")["last_seq"]) == (151, 200)


def test_on_a_durable_store_the_ring_size_drops_nothing(start: Start, tmp_path: Path) -> None:
    server: TapeServer = start(f"sqlite:///{tmp_path}/tape.db", "--event-ring-size", "50")
    with server.client() as http:
        write(http, "r", 200)
        http.post("/runs/r/close")

        assert len(frames(http, "r")) == 200
