"""A connection as uvicorn's HTTP/1.1 protocol holds it, with limits on how it begins and a way to its socket."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tape.core.errors import TapeError
from tape.server.http.head import Head
from tape.server.http.problem import Problem
from tape.server.http.refusals import BadRequest, RequestTimeout

HEAD_S: Final = 10.0
LINGER_S: Final = 1.0
BUFFERED: Final = 64 * 1024
EXTENSION: Final = "tape.transport"


class Connection(HttpToolsProtocol):
    """Refuses a beginning that is too large or too slow, and tells a stream how much its socket has taken."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.paused: Callable[[], object] | None = None
        self.resumed: Callable[[], object] | None = None
        self._head = Head()
        self._refused: TapeError | None = None
        self._is_at_head = True
        self._unfinished = 0
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_paused(self) -> bool:
        """Whether the socket has as much as it may keep waiting."""
        return self.flow.write_paused

    async def drain(self) -> None:
        """Until there is room, or nobody is there any more."""
        await self.flow.drain()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))  # a server's connections go both ways
        self.transport.set_write_buffer_limits(high=BUFFERED)
        self._expect_end_of_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)
        self._tell_resumed()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.paused is not None:
            self.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._tell_resumed()

    def data_received(self, data: bytes) -> None:
        if self._refused is not None:
            return
        if self._is_at_head:
            self._unfinished += len(data)
            self._expect_end_of_head()
        super().data_received(data)
        if self._is_at_head and self._refused is None:
            self._check_unfinished()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = Head()
        self.scope["extensions"] = {EXTENSION: {"connection": self}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._counted(self._head.add_url, len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._counted(self._head.add_header, len(name) + len(value))

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            self._refused = BadRequest("a request names a path, not a whole URL")
            raise self._refused
        self._is_at_head = False
        self._unfinished = 0
        self._forget_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_at_head = True

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refused or BadRequest("this is not a request in HTTP/1.1"))

    def _counted(self, count: Callable[[int], None], size: int) -> None:
        """The parser stops at whatever is raised here, and says only that something was."""
        try:
            count(size)
        except TapeError as refused:
            self._refused = refused
            raise

    def _check_unfinished(self) -> None:
        try:
            self._head.check_unfinished(self._unfinished)
        except TapeError as refused:
            self._refuse(refused)

    def _expect_end_of_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self._end_slow_head)

    def _end_slow_head(self) -> None:
        self._refuse(RequestTimeout(f"a request begins within {HEAD_S:g} s"))

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, error: TapeError) -> None:
        """Says so and hangs up; when requests before it are still to be answered, it only hangs up after them."""
        self._refused = error
        self._forget_deadline()
        cycle = self.cycle
        is_answered = cycle is None or cycle.response_complete
        if not is_answered and not cycle.more_body:
            cycle.keep_alive = False
            return
        if not is_answered and cycle.response_started:
            self.transport.close()  # whoever is writing the answer is told that nobody is there any more
            return
        self.transport.write(Problem.of(error).raw())
        self._hang_up()

    def _hang_up(self) -> None:
        """Says its last word and listens a moment longer: closing on what is still coming would take the word back."""
        if not self.transport.is_closing():
            self.transport.write_eof()
            self._deadline = self.loop.call_later(LINGER_S, self.transport.close)

    def _tell_resumed(self) -> None:
        if self.resumed is not None:
            self.resumed()
