"""A stream of events over any number of connections: every id once, in order."""

import random
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Self, TypeAlias

import anyio
import httpx
import msgspec

from tape.core.errors import UsageError
from tape.sdk.backoff import Backoff
from tape.sdk.connection import EPOCH, MEDIA_TYPE, ResponseConnection, check_answer, is_at_end
from tape.sdk.cursor import Cursor
from tape.sdk.problems import raised_from
from tape.sdk.subscription import Subscription
from tape.wire.frames import (
    Checkpoint,
    ClientEvicted,
    Delivered,
    Frame,
    Goaway,
    RunEnd,
    StateResyncRequired,
    StreamError,
    Synthetic,
)

Event: TypeAlias = Delivered | Synthetic

TRANSIENT: Final = frozenset({408, 429})
DEFAULT_BACKOFF: Final = Backoff()
LONGEST_RETRY_AFTER: Final = timedelta(minutes=5)
WARNS: Final = "slow_client_warning"  # the capability that maxQueued needs


class EventStream:
    """The events of a server from a position on: entries, and typed frames about the stream.

    A connection that ends is opened again after the last id, with the delay that the server asked for. Iteration ends
    after the frame `RunEnd`, or when the cursor is at the end of a closed run. A request that can never succeed raises
    the server's error. Use it as a context manager, or call `aclose` when you leave before the end. A cancelled read
    loses a connection, no event.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        subscription: Subscription,
        *,
        backoff: Backoff = DEFAULT_BACKOFF,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._http = http
        self._subscription = subscription
        self._jitter = jitter
        self._cursor = Cursor()
        self._backoff = backoff
        self._pause = timedelta(0)
        self._connection: ResponseConnection | None = None
        self._last_frame: Synthetic | None = None
        self._ready: deque[Event] = deque()
        self._is_over = False
        self._capabilities_checked = subscription.max_queued is None
        self.skipped = 0

    @property
    def cursor(self) -> Cursor:
        """Where the stream would resume; `events(from_seq=place + 1)` continues in another process."""
        return self._cursor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._ready:
            self._ready.extend(await self.batch())
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the stream; further reads return nothing."""
        self._is_over = True
        self._ready.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def batch(self) -> list[Event]:
        """All events that have arrived, at least one; none when the stream is over."""
        events: list[Event] = []
        while not events and not self._is_over:
            # No attribute holds the connection while it is read, so a cancelled read leaves no half-read one behind.
            connection, self._connection = self._connection, None
            if connection is None:
                self._connection = await self._connect()
            else:
                events = await self._read(connection)
        return events

    async def _read(self, connection: ResponseConnection) -> list[Event]:
        events = self._accepted(await connection.read(), connection)
        if self._connection is None:
            with anyio.CancelScope(shield=True):  # the cursor is already past these events, so they must be returned
                await connection.aclose()
        return events

    def _accepted(self, frames: list[Frame], connection: ResponseConnection) -> list[Event]:
        fresh = [frame for frame in frames if self._take(frame, connection)]
        self._backoff = self._backoff.with_retry(connection.retry_ms)
        if connection.has_ended or self._is_over:
            self.skipped += connection.skipped
            self._plan_reconnect()
        else:
            self._connection = connection
        return [frame for frame in fresh if not isinstance(frame, Checkpoint)]

    def _take(self, frame: Frame, connection: ResponseConnection) -> bool:
        if self._cursor.has_passed(frame):
            return False
        if isinstance(frame, StateResyncRequired) and frame.epoch is not None:
            connection.epoch = str(frame.epoch)
        self._cursor = self._cursor.after(frame, connection.epoch)
        if isinstance(frame, ClientEvicted | Goaway | StreamError):
            self._last_frame = frame
        self._is_over = self._is_over or isinstance(frame, RunEnd)
        if not isinstance(frame, StreamError):
            self._backoff = self._backoff.succeeded()
        return True

    def _plan_reconnect(self) -> None:
        """Sets the delay before the next connection."""
        last, self._last_frame = self._last_frame, None
        if isinstance(last, Goaway):
            self._pause = timedelta(milliseconds=last.reconnect_after_ms) * (1 + self._jitter() / 2)
        else:
            self._wait_longer()

    def _wait_longer(self, at_least: timedelta = timedelta(0)) -> None:
        self._pause = self._backoff.delay(self._jitter(), at_least)
        self._backoff = self._backoff.failed()

    async def _connect(self) -> ResponseConnection | None:
        """A connection, or None to try again."""
        await anyio.sleep(self._pause.total_seconds())
        try:
            if not self._capabilities_checked:
                await self._check_capabilities()
            response = await self._send("/events", self._subscription.query, stream=True)
        except httpx.TransportError:
            self._wait_longer()
            return None
        if response is None:
            return None
        if self._subscription.run_id is not None and is_at_end(response):
            await response.aclose()
            self._is_over = True
            return None
        try:
            check_answer(response)
        except UsageError:
            await response.aclose()
            raise
        return ResponseConnection(response)

    async def _check_capabilities(self) -> None:
        """A server without warnings would ignore maxQueued and evict without a warning."""
        response = await self._send("/capabilities", {}, stream=False)
        if response is None:
            return
        if not _offers(response, WARNS):
            raise UsageError(f"max_queued needs a server with the capability {WARNS!r}, which {response.url} has not")
        self._capabilities_checked = True

    async def _send(self, path: str, query: dict[str, str], *, stream: bool) -> httpx.Response | None:
        """The response, or None to try again later; raises if the request was refused."""
        request = self._http.build_request("GET", path, params=query, headers=self._headers())
        response = await self._http.send(request, stream=stream)
        status = response.status_code
        if status < httpx.codes.BAD_REQUEST:
            return response
        body = await response.aread()
        if status in TRANSIENT or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            self._wait_longer(_retry_after(response))
            return None
        raise raised_from(status, body, {"run_id": self._subscription.run_id})

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": MEDIA_TYPE, "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if self._cursor.place is not None:
            headers["Last-Event-ID"] = str(self._cursor.place)
            if self._cursor.epoch is not None:
                headers[EPOCH] = self._cursor.epoch
        return headers


def _retry_after(response: httpx.Response) -> timedelta:
    seconds = response.headers.get("retry-after", "")
    is_number = seconds.isascii() and seconds.isdigit()
    return min(timedelta(seconds=int(seconds[:9])), LONGEST_RETRY_AFTER) if is_number else timedelta(0)


def _offers(response: httpx.Response, capability: str) -> bool:
    try:
        answer: Any = msgspec.json.decode(response.content)
    except (ValueError, RecursionError):
        return False
    features = answer.get("features", answer) if isinstance(answer, dict) else answer
    return bool(features.get(capability)) if isinstance(features, dict) else capability in (features or ())
