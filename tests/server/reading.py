"""Reads SSE streams over HTTP."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import httpx

from tape.sdk.client import AsyncClient
from tape.wire.frames import Delivered, Frame
from tape.wire.sse import Parser
from tests.deadlines import DEADLINE_S
from tests.server.server import TapeServer


class Listener:
    """An open stream that is read only on request."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = response.headers
        self.frames: list[Frame] = []
        self._chunks = response.iter_raw()
        self._parser = Parser()

    def until(self, is_enough: Callable[[list[Frame]], bool]) -> list[Frame]:
        while not is_enough(self.frames):
            self.frames += self._parser.feed(next(self._chunks))
        return self.frames

    def ids(self, count: int) -> list[int]:
        """Reads so many entries; returns their ids."""
        return ids(self.until(lambda frames: len(ids(frames)) >= count))

    def first(self, kind: type[Frame]) -> Frame:
        """The first frame of a kind."""
        self.until(lambda frames: any(isinstance(frame, kind) for frame in frames))
        return next(frame for frame in self.frames if isinstance(frame, kind))

    def rest(self) -> list[Frame]:
        """Reads to the end of the stream."""
        for chunk in self._chunks:
            self.frames += self._parser.feed(chunk)
        return self.frames


@contextmanager
def open_stream(
    http: httpx.Client, path: str, headers: dict[str, str] | None = None, **query: object
) -> Iterator[Listener]:
    with http.stream("GET", path, params={**query}, headers=headers or {}) as response:  # type: ignore[dict-item]
        assert response.status_code == 200, response.read()
        yield Listener(response)


def ids(frames: Iterable[Frame]) -> list[int]:
    return [frame.id for frame in frames if isinstance(frame, Delivered)]


def publish(http: httpx.Client, run_id: str, *payloads: object) -> list[int]:
    """Appends to a run, and opens a new one; returns the seqs."""
    answer = http.post(f"/runs/{run_id}/events", json=[{"payload": payload} for payload in payloads])
    if answer.status_code == 404:
        http.post("/runs", json={"run_id": run_id}).raise_for_status()
        return publish(http, run_id, *payloads)
    answer.raise_for_status()
    return [entry["seq"] for entry in answer.json()["entries"]]


@asynccontextmanager
async def client_at(server: TapeServer, port: int | None = None) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(f"http://127.0.0.1:{port or server.port}") as client:
        with anyio.fail_after(DEADLINE_S):
            yield client
