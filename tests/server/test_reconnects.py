"""P6 over a bad network: every id once, in order, or an explicit resync."""

import random
import signal
import socket
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx
import httpx_sse
import pytest

from tape.sdk.client import AsyncClient
from tape.sdk.subscription import Slow
from tape.wire.frames import Delivered, Goaway, StateResyncRequired, Synthetic
from tests.conftest import Scale
from tests.contract.events import upto
from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.reading import publish
from tests.server.server import TapeServer
from tests.servers.faults import fault_proxy, seeded
from tests.servers.process import free_port

HOSTILE = [
    "\n\ndata: {}\n\n",
    "\r\ndata: x",
    "\u2028\u2029",
    "id: 99\n\n",
    "event: client_evicted",
    ":",
    "\ufeff",
    "é😀",
]


@dataclass(slots=True)
class Story:
    """The frames that a reader received."""

    entries: list[Delivered] = field(default_factory=list)
    words: list[Synthetic] = field(default_factory=list)

    async def read(self, client: AsyncClient, run_id: str, slow: Slow | None = None) -> None:
        """A run to its end."""
        async with aclosing(client.events(run_id=run_id, slow=slow)) as stream:
            async for event in stream:
                if isinstance(event, Delivered):
                    self.entries.append(event)
                else:
                    self.words.append(event)

    def has(self, kind: type[Synthetic]) -> bool:
        return any(isinstance(word, kind) for word in self.words)


async def test_resets_crumbs_stalls_and_half_closes_lose_and_repeat_nothing(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str, scale: Scale
) -> None:
    """P6."""
    story, rounds = Story(), scale(40)
    publish(lasting, run_id, *HOSTILE)

    async def publish_rounds(http: httpx.AsyncClient) -> None:
        for n in range(rounds):
            answer = await http.post(f"/runs/{run_id}/events", json=[{"payload": [n, HOSTILE]}] * 5)
            answer.raise_for_status()
        await http.post(f"/runs/{run_id}/close")

    with anyio.fail_after(DEADLINE_S * rounds):
        async with (
            fault_proxy(lasting_server.port, seeded(7, answer=60_000)) as proxy,
            AsyncClient(f"http://127.0.0.1:{proxy.port}") as client,
            lasting_server.async_client() as http,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(publish_rounds, http)
            await story.read(client, run_id, "lag")

    assert [event.id for event in story.entries] == upto(len(HOSTILE) + 5 * rounds)
    assert [event.payload for event in story.entries[: len(HOSTILE)]] == HOSTILE
    assert not story.has(StateResyncRequired)


async def test_another_reader_of_the_wire_agrees(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str
) -> None:
    """httpx-sse is the judge."""
    publish(lasting, run_id, *HOSTILE)
    lasting.post(f"/runs/{run_id}/close")

    async with (
        lasting_server.async_client() as http,
        httpx_sse.aconnect_sse(http, "GET", "/events", params={"run_id": run_id}) as source,
    ):
        events = [event async for event in source.aiter_sse()]

    *received, end = [(event.id, event.event, event.json().get("data")) for event in events if event.data]
    assert received[:-1] == [(str(n), "message", payload) for n, payload in enumerate(HOSTILE, 1)]
    assert received[-1] == (
        str(len(HOSTILE)),
        "replay_complete",
        {"replayedCount": len(HOSTILE), "lastEventId": len(HOSTILE)},
    )
    assert end == (str(len(HOSTILE)), "run_end", None)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restart_of_a_durable_server_is_no_resync(
    start: Start, tmp_path: Path, run_id: str, ending: signal.Signals
) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    story = Story()
    place = f"127.0.0.1:{free_port()}"
    server = start(store, "--http", place)

    with server.client() as http, anyio.fail_after(DEADLINE_S):
        publish(http, run_id, *range(1, 51))
        async with AsyncClient(server.url) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(story.read, client, run_id)
            await _until(lambda: len(story.entries) == 50)
            server.signal(ending)
            server.wait()
            again = start(store, "--http", place)
            with again.client() as later:
                publish(later, run_id, *range(51, 101))
                later.post(f"/runs/{run_id}/close")

    assert [event.payload for event in story.entries] == upto(100)
    assert not story.has(StateResyncRequired)
    assert story.has(Goaway) == (ending is signal.SIGTERM)


async def test_disconnected_readers_leave_no_stream(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str, scale: Scale
) -> None:
    """Readers are cancelled at random moments; the server closes each of their streams and continues."""
    chance = random.Random(5)
    publish(lasting, run_id, *range(100))

    async with lasting_server.async_client(limits=httpx.Limits(max_connections=None)) as http:
        for _ in range(scale(25)):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(_glance, http, run_id, chance.random() / 20)
            publish(lasting, run_id, "more")

    with anyio.fail_after(DEADLINE_S):
        await _until(lambda: "tape_subscribers 0\n" in lasting.get("/metrics").text)
    assert len(publish(lasting, run_id, "still there")) == 1


def test_a_reader_that_disconnects_before_the_answer_is_no_error(start: Start, tmp_path: Path, run_id: str) -> None:
    server = start(f"sqlite:///{tmp_path}/tape.db")
    with server.client() as http:
        publish(http, run_id, 1)
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", server.port)) as line:
                line.sendall(f"GET /events?run_id={run_id} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until(lambda: "tape_subscribers 0\n" in http.get("/metrics").text, "everybody is gone")

        assert 'status="500"' not in http.get("/metrics").text
    assert "request.failed" not in server.log


async def _until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - nothing tells us
        await anyio.sleep(0.02)


async def _glance(http: httpx.AsyncClient, run_id: str, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        async with http.stream("GET", "/events", params={"run_id": run_id}) as response:
            async for _ in response.aiter_raw():
                pass
