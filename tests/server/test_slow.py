"""Slow connections are closed, and delay no other."""

import socket
from contextlib import ExitStack

import httpx

from tests.deadlines import DEADLINE_S
from tests.server.server import TapeServer

HEAD = b"POST /runs HTTP/1.1\r\nhost: localhost\r\n"


def test_slow_requests_on_500_new_connections_and_a_reused_one_are_aborted_and_delay_no_other(
    lasting_server: TapeServer, lasting: httpx.Client
) -> None:
    with ExitStack() as stack:
        reused = stack.enter_context(connect(lasting_server))
        reused.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        first = reused.recv(65536)
        reused.sendall(HEAD)
        lines = [stack.enter_context(connect(lasting_server)) for _ in range(500)]
        for number, line in enumerate(lines):
            line.sendall(HEAD[: number % len(HEAD)])
        codes = {lasting.get("/health").status_code for _ in range(200)}
        answers = [ended(line) for line in lines]
        last = ended(reused)

    assert codes == {200}
    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 408") for answer in answers)
    assert first.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 408" in last


def test_an_unexpected_large_body_closes_the_connection(lasting_server: TapeServer) -> None:
    with connect(lasting_server) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nx")

        assert ended(line).startswith(b"HTTP/1.1 200")


def test_an_unexpected_small_body_keeps_the_connection(lasting_server: TapeServer) -> None:
    head = b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n"
    with connect(lasting_server) as line:
        line.sendall(head + b"\r\n{}" + head + b"connection: close\r\n\r\n{}")

        assert ended(line).count(b"HTTP/1.1 200") == 2


def connect(server: TapeServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)


def ended(line: socket.socket) -> bytes:
    """What came before the other side hung up."""
    return b"".join(iter(lambda: line.recv(65536), b""))
