"""uvicorn's HTTP/1.1 protocol with limits on the request head and access to its transport."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tape.core.errors import TapeError
from tape.server.http.errors import BadRequest, RequestTimeout
from tape.server.http.head_limits import MAX_HEAD, HeadLimits, headers_too_long
from tape.server.http.problem import Problem

HEAD_S: Final = 10.0
LINGER_S: Final = 1.0
BUFFERED: Final = 64 * 1024
EXTENSION: Final = "tape.transport"


class HttpConnection(HttpToolsProtocol):
    """Refuses a head that is too large or too slow, and calls a stream back when its socket can take more."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.on_paused: Callable[[], object] | None = None
        self.on_resumed: Callable[[], object] | None = None
        self._head = HeadLimits()
        self._refused: TapeError | None = None
        self._is_at_head = True
        self._unfinished = 0
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_paused(self) -> bool:
        """Whether the write buffer is full."""
        return self.flow.write_paused

    async def drain(self) -> None:
        """Waits until the write buffer has room or the connection is lost."""
        await self.flow.drain()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))  # a server's transport can write
        self.transport.set_write_buffer_limits(high=BUFFERED)
        self._start_head_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)
        self._call_resumed()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.on_paused is not None:
            self.on_paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._call_resumed()

    def data_received(self, data: bytes) -> None:
        if self._refused is not None:
            return
        if self._is_at_head:
            self._unfinished += len(data)
            self._start_head_timeout()
        super().data_received(data)
        if self._is_at_head and self._refused is None and self._unfinished > MAX_HEAD:
            self._refuse(headers_too_long())  # before the head ends: one header may be endless

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = HeadLimits()
        self.scope["extensions"] = {EXTENSION: {"connection": self}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._check_limit(self._head.add_url, len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._check_limit(self._head.add_header, len(name) + len(value))

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            self._refused = BadRequest("a request names a path, not a whole URL")
            raise self._refused
        self._is_at_head = False
        self._unfinished = 0
        self._cancel_timeout()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_at_head = True

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refused or BadRequest("this is not a request in HTTP/1.1"))

    def _check_limit(self, count: Callable[[int], None], size: int) -> None:
        """Keeps the error: the parser stops at an exception but reports no reason."""
        try:
            count(size)
        except TapeError as refused:
            self._refused = refused
            raise

    def _start_head_timeout(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self._on_head_timeout)

    def _on_head_timeout(self) -> None:
        self._refuse(RequestTimeout(f"the head of a request must arrive within {HEAD_S:g} s"))

    def _cancel_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, error: TapeError) -> None:
        """Sends the problem and closes; if earlier requests are unanswered, only closes after them."""
        self._refused = error
        self._cancel_timeout()
        cycle = self.cycle
        is_answered = cycle is None or cycle.response_complete
        if not is_answered and not cycle.more_body:
            cycle.keep_alive = False
            return
        if not is_answered and cycle.response_started:
            self.transport.close()  # its handler sees a disconnect
            return
        self.transport.write(Problem.of(error).raw())
        self._close_gracefully()

    def _close_gracefully(self) -> None:
        """Sends EOF and reads on for a moment: closing while data arrives would reset the response."""
        if not self.transport.is_closing():
            self.transport.write_eof()
            self._deadline = self.loop.call_later(LINGER_S, self.transport.close)

    def _call_resumed(self) -> None:
        if self.on_resumed is not None:
            self.on_resumed()
