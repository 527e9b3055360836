"""Connections that take their time: they are hung up on, and nobody else waits for them."""

import socket
from contextlib import ExitStack

import httpx

from tests.patience import PATIENCE_S
from tests.server.server import TapeServer

HEAD = b"POST /runs HTTP/1.1\r\nhost: localhost\r\n"


def test_500_slow_beginnings_are_ended_and_delay_nobody(lasting_server: TapeServer, lasting: httpx.Client) -> None:
    with ExitStack() as stack:
        lines = [stack.enter_context(connect(lasting_server)) for _ in range(500)]
        for number, line in enumerate(lines):
            line.sendall(HEAD[: number % len(HEAD)])
        codes = {lasting.get("/health").status_code for _ in range(200)}
        answers = [ended(line) for line in lines]

    assert codes == {200}
    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 408") for answer in answers)


def test_a_slow_beginning_on_a_used_connection_is_ended_too(lasting_server: TapeServer) -> None:
    with connect(lasting_server) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
        line.sendall(HEAD)

        assert b"HTTP/1.1 408" in ended(line)


def test_a_body_that_a_route_does_not_want_keeps_no_connection(lasting_server: TapeServer) -> None:
    with connect(lasting_server) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nx")

        assert ended(line).startswith(b"HTTP/1.1 200")


def test_a_small_body_that_a_route_does_not_want_costs_no_connection(lasting_server: TapeServer) -> None:
    head = b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n"
    with connect(lasting_server) as line:
        line.sendall(head + b"\r\n{}" + head + b"connection: close\r\n\r\n{}")

        assert ended(line).count(b"HTTP/1.1 200") == 2


def connect(server: TapeServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def ended(line: socket.socket) -> bytes:
    """What came before the other side hung up."""
    return b"".join(iter(lambda: line.recv(65536), b""))
