"""P8: a slow reader hurts only itself."""

import socket
from collections.abc import Iterator
from contextlib import aclosing, contextmanager

import anyio
import httpx

from tape.sdk.client import AsyncClient
from tape.wire.frames import ClientEvicted, Frame, SlowClientWarning
from tape.wire.sse import Parser
from tests.contract.events import upto
from tests.deadlines import DEADLINE_S
from tests.server.reading import ids, publish
from tests.server.server import TapeServer

EVENTS = 3_000
PAYLOAD = "x" * 1_000
MIB = 1 << 20


class Crawler:
    """A raw connection that reads about a kilobyte a second."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.taken = b""

    def crawl(self) -> None:
        self.taken += self._line.recv(100)

    def hurry(self) -> list[Frame]:
        """Everything that is left, as fast as it comes."""
        while not self.taken.endswith(b"\r\n0\r\n\r\n"):
            self.taken += self._line.recv(65_536)
        head, _, body = self.taken.partition(b"\r\n\r\n")
        assert b"200 OK" in head
        return Parser().feed(b"".join(_chunks(body)))


@contextmanager
def crawling(server: TapeServer, path: str) -> Iterator[Crawler]:
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(DEADLINE_S)
        line.connect(("127.0.0.1", server.port))
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield Crawler(line)


def _chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, rest = body.partition(b"\r\n")
        yield rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]


async def test_a_reader_at_a_kilobyte_a_second_is_warned_once_evicted_and_delays_no_other(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str
) -> None:
    publish(lasting, run_id, 0)
    before = lasting_server.rss
    healthy: list[Frame] = []

    async def listen(client: AsyncClient) -> None:
        async with aclosing(client.events(run_id=run_id)) as stream:
            async for event in stream:
                healthy.append(event)

    with crawling(lasting_server, f"/events?run_id={run_id}") as crawler, anyio.fail_after(DEADLINE_S * 3):
        async with AsyncClient(lasting_server.url) as client, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(listen, client)
            await _publish(lasting_server, run_id)
            while "tape_evictions_total" not in _evictions(lasting):
                crawler.crawl()
                await anyio.sleep(0.1)
            lasting.post(f"/runs/{run_id}/close")
        frames = crawler.hurry()

    *_, last = frames
    warnings = [frame for frame in frames if isinstance(frame, SlowClientWarning)]
    assert (len(warnings), last) == (1, ClientEvicted(reason=last.reason, dropped_after=ids(frames)[-1]))  # type: ignore[union-attr]
    assert ids(frames) == upto(len(ids(frames)))
    assert not any(isinstance(frame, ClientEvicted | SlowClientWarning) for frame in healthy)
    assert sorted(ids(healthy)) == sorted(upto(EVENTS + 1) * 3)
    assert lasting_server.rss - before < 60 * MIB


async def _publish(server: TapeServer, run_id: str) -> None:
    """Publishes fast, but at a pace that a healthy reader can follow."""
    async with server.async_client() as http:
        for _ in range(EVENTS // 50):
            answer = await http.post(f"/runs/{run_id}/events", json=[{"payload": PAYLOAD}] * 50)
            answer.raise_for_status()
            await anyio.sleep(0.01)


def _evictions(http: httpx.Client) -> str:
    lines = http.get("/metrics").text.splitlines()
    return "".join(line for line in lines if line.startswith("tape_evictions_total{"))


def test_a_reader_that_may_lag_is_not_evicted(lasting_server: TapeServer, lasting: httpx.Client, run_id: str) -> None:
    publish(lasting, run_id, 0)

    with crawling(lasting_server, f"/events?run_id={run_id}&slow=lag") as crawler:
        for _ in range(EVENTS // 100):
            publish(lasting, run_id, *[PAYLOAD] * 100)
        lasting.post(f"/runs/{run_id}/close")
        frames = crawler.hurry()

    assert ids(frames) == upto(EVENTS + 1)
    assert not any(isinstance(frame, ClientEvicted) for frame in frames)
