"""One response of `GET /events`: its frames until it ends."""

from typing import Final

import httpx

from tape.core.errors import SseFramingError, UsageError, quoted
from tape.wire.frames import Frame
from tape.wire.sse import Parser

MEDIA_TYPE: Final = "text/event-stream"
EPOCH: Final = "X-Tape-Epoch"


class ResponseConnection:
    """Reads a response chunk by chunk, as fast as its reader consumes it.

    The end of a response does not mean that its run has ended, because a gateway may end it cleanly. Only a frame says
    so.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parser = Parser()
        self._chunks = response.aiter_bytes()
        self.epoch: str | None = response.headers.get(EPOCH)
        self.has_ended = False

    @property
    def retry_ms(self) -> int | None:
        return self._parser.retry_ms

    @property
    def skipped(self) -> int:
        return self._parser.skipped

    async def read(self) -> list[Frame]:
        """The frames of the next chunk, often none; at the end it sets `has_ended`."""
        try:
            return self._parser.feed(await anext(self._chunks))
        except (StopAsyncIteration, httpx.TransportError):
            self.has_ended = True
        except SseFramingError:
            await self.aclose()
            raise
        return self._parser.end()

    async def aclose(self) -> None:
        await self._response.aclose()


def is_at_end(response: httpx.Response) -> bool:
    """Whether the run is closed and the cursor at its end; a gateway's 204 has no epoch header."""
    return response.status_code == httpx.codes.NO_CONTENT and EPOCH in response.headers


def check_answer(response: httpx.Response) -> None:
    """Refuses a successful response that is not an event stream."""
    kind = response.headers.get("content-type", "")
    if response.status_code != httpx.codes.OK or kind.partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise UsageError(f"{response.url} answered {response.status_code} {quoted(kind)}, not a stream of Tape")
