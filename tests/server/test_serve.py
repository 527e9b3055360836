"""`tape serve` as a process: where it listens, what it leaves behind, and how it ends."""

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.server import TapeServer, clean_environment
from tests.servers import forked
from tests.servers.postgres import PostgresServer

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., Done]:
    """The error of a `tape serve` that does not start."""

    def run(*options: str) -> Done:
        arguments = ["serve", "--store", "memory://", *options]
        return forked.run("tape.cli.main", arguments, folder=tmp_path, environment=clean_environment())

    return run


@pytest.mark.parametrize("host", ["0.0.0.0:0", "[::]:0", ":0", "example.org:80", "192.168.1.1:0"])
@pytest.mark.parametrize("option", ["--http", "--grpc"])
def test_any_host_but_loopback_exits_2(refused: Callable[..., Done], option: str, host: str) -> None:
    done = refused(option, host)

    assert (done.returncode, done.stdout) == (2, "")
    assert "only this machine" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--event-ring-size", "0"), ("--event-ring-size", "1000001"), ("--event-ring-size", "x"),
        ("--max-subscribers", "0"), ("--http", "localhost"), ("--store", "ftp://x"), ("--reap-after", "x"),
    ],
)  # fmt: skip
def test_an_option_out_of_bounds_exits_2(refused: Callable[..., Done], options: tuple[str, str]) -> None:
    done = refused("--http", "127.0.0.1:0", *options)

    assert (done.returncode, done.stdout) == (2, ""), done.stderr


def test_a_port_in_use_exits_2_with_an_error(refused: Callable[..., Done]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = refused("--http", f"127.0.0.1:{taken.getsockname()[1]}")

    assert done.returncode == 2
    assert "cannot listen on" in done.stderr and "in use" in done.stderr


def test_a_grpc_port_in_use_exits_2_with_an_error(refused: Callable[..., Done]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = refused("--http", "127.0.0.1:0", "--grpc", f"127.0.0.1:{taken.getsockname()[1]}")

    assert done.returncode == 2
    assert "for gRPC: the port is taken" in done.stderr


def test_it_listens_on_this_machine_only(start: Start) -> None:
    server = start("memory://")

    listening = [
        each.laddr for each in psutil.Process(server.pid).net_connections() if each.status == psutil.CONN_LISTEN
    ]

    grpc_port = int(server.rpc.rpartition(":")[2])
    places = {(each.ip.removeprefix("::ffff:"), each.port) for each in listening}
    assert places == {("127.0.0.1", server.port), ("127.0.0.1", grpc_port)}


def test_its_files_are_private_with_any_umask(start: Start, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        server = start(f"sqlite:///{tmp_path}/data/tape.db")
    finally:
        os.umask(before)
    httpx.post(f"{server.url}/runs", trust_env=False)

    data = tmp_path / "data"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in data.glob("tape.db*") if path.is_file()} == {0o600}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(start: Start, number: signal.Signals) -> None:
    server = start("memory://")
    with server.client() as http:
        http.post("/runs", json={"run_id": "r"})

        server.signal(number)

        assert server.wait() == 0
    assert "Traceback" not in server.log


def test_requests_in_flight_are_answered_after_the_signal(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/tape.db")
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as line, server.client() as http:
        http.post("/runs", json={"run_id": "r"})
        body = b'{"payload": 1}'
        head = b"POST /runs/r/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        line.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body[:5])
        wait_until_read(server)
        server.signal(signal.SIGTERM)
        wait_until_deaf(server)
        line.sendall(body[5:])

        assert line.recv(65536).startswith(b"HTTP/1.1 201")
    assert server.wait() == 0


def test_readers_get_a_goaway_and_do_not_delay_the_shutdown(start: Start) -> None:
    server = start("memory://")
    with server.client() as http:
        http.post("/runs", json={"run_id": "r"})
        with http.stream("GET", "/events", params={"run_id": "r"}) as stream:
            lines = stream.iter_lines()
            next(lines)
            server.signal(signal.SIGTERM)
            goaways = [line for line in lines if line.startswith("data:") and "goaway" in line]

    assert 1000 <= json.loads(goaways[0][5:])["data"]["reconnectAfterMs"] <= 5000
    assert server.wait() == 0


def test_a_reader_that_catches_up_gets_a_goaway_too(start: Start) -> None:
    server = start("memory://")
    with server.client() as http, socket.socket() as slow:
        http.post("/runs", json={"run_id": "r"})
        http.post("/runs/r/events", json=[{"payload": "x" * 100_000}] * 20)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(DEADLINE_S)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"GET /events?run_id=r HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert slow.recv(1024).startswith(b"HTTP/1.1 200")
        server.signal(signal.SIGTERM)
        wait_until_deaf(server)
        rest = b"".join(iter(lambda: slow.recv(1 << 20), b""))

    assert b"event: goaway" in rest and rest.endswith(b"0\r\n\r\n")
    assert server.wait() == 0


def test_a_stalled_reader_does_not_delay_the_shutdown_for_long(start: Start) -> None:
    server = start("memory://")
    with server.client() as http, socket.create_connection(("127.0.0.1", server.port)) as deaf:
        http.post("/runs", json={"run_id": "r"})
        deaf.sendall(b"GET /events?run_id=r&slow=lag HTTP/1.1\r\nhost: localhost\r\n\r\n")
        for _ in range(20):
            http.post("/runs/r/events", json={"payload": "x" * 1_000_000})
        server.signal(signal.SIGTERM)

        assert server.wait() == 0


def test_a_reader_beyond_the_limit_of_a_run_gets_retry_after(start: Start) -> None:
    server = start("memory://", "--max-subscribers", "1")
    with server.client() as http:
        for run_id in ("r", "other"):
            http.post("/runs", json={"run_id": run_id})
        with http.stream("GET", "/events", params={"run_id": "r"}) as first:
            refused = http.get("/events", params={"run_id": "r"})
            with http.stream("GET", "/events", params={"run_id": "other"}) as other:
                statuses = first.status_code, refused.status_code, other.status_code

    assert statuses == (200, 429, 200)
    assert (refused.headers["retry-after"], refused.json()["code"]) == ("5", "subscriber_limit_exceeded")
    assert refused.json()["limit"] == 1


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    server = start("memory://")
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(
            b"POST /runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
        )
        wait_until_read(server)
        server.signal(signal.SIGTERM)
        wait_until_deaf(server)
        server.signal(signal.SIGTERM)

        assert server.wait() == 128 + signal.SIGTERM


def test_a_durable_server_resumes_after_a_kill(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    with start(store) as first, first.client() as http:
        epoch = http.post("/runs", json={"run_id": "r"}).json()["epoch"]
        http.post("/runs/r/events", json={"payload": 1})
        first.kill()
    second = start(store)

    with second.client() as http:
        assert http.post("/runs/r/events", json={"payload": 2}).json()["entries"][0]["seq"] == 2
        assert http.get("/runs/r").json()["epoch"] == epoch


def test_a_store_that_is_down_is_503_and_the_process_stays(
    start: Start, postgres_server: PostgresServer, postgres_url: str
) -> None:
    server = start(postgres_url)
    with server.client() as http:
        http.post("/runs", json={"run_id": "r"})
        postgres_server.kill_hard()
        ready, appended = http.get("/ready"), http.post("/runs/r/events", json={"payload": 1})
        health = http.get("/health")
        postgres_server.restart()

    assert (ready.status_code, appended.status_code, health.status_code) == (503, 503, 200)
    assert ready.json()["reason"].startswith("the store ")
    assert appended.json()["outcome"] in ("unknown", "nothing") and appended.headers["retry-after"]
    assert not any(word in ready.text + appended.text for word in ("postgres", "SELECT", "/", "Traceback"))


def wait_until_read(server: TapeServer) -> None:
    """Until whatever was sent before has been looked at: the server is one loop, and answers in order."""
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200


def wait_until_deaf(server: TapeServer) -> None:
    """Returns when it accepts no connection any more."""
    until(lambda: not accepts(server), "it accepts nobody")


def accepts(server: TapeServer) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
    except ConnectionError:
        return False
    return True
