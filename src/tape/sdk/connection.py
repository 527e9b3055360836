"""One answer of a server to `GET /events`: its frames, and whether it ended or was cut off."""

from enum import Enum
from typing import Final

import httpx

from tape.core.errors import SseFramingError, UsageError, shown
from tape.wire.frames import Frame
from tape.wire.sse import Parser

MEDIA_TYPE: Final = "text/event-stream"
EPOCH: Final = "X-Tape-Epoch"


class Ending(Enum):
    """How an answer ended; only a server that says so has ended it."""

    PROPER = "the server finished it"
    CUT = "the connection was lost"


class Connection:
    """Reads an answer, piece by piece, as its reader has room for it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parser = Parser()
        self._chunks = response.aiter_bytes()
        self.epoch: str | None = response.headers.get(EPOCH)
        self.ending: Ending | None = None

    @property
    def retry_ms(self) -> int | None:
        return self._parser.retry_ms

    @property
    def skipped(self) -> int:
        return self._parser.skipped

    async def read(self) -> list[Frame]:
        """The frames of the next piece, often none; `ending` is set by the last one."""
        try:
            return self._parser.feed(await anext(self._chunks))
        except StopAsyncIteration:
            self.ending = Ending.PROPER if self._says_when_it_ends() else Ending.CUT
        except httpx.TransportError:
            self.ending = Ending.CUT
        except SseFramingError:
            await self.aclose()
            raise
        return self._parser.end()

    async def aclose(self) -> None:
        await self._response.aclose()

    def _says_when_it_ends(self) -> bool:
        """Without a length the end of an answer and the loss of its connection look the same."""
        return "transfer-encoding" in self._response.headers or "content-length" in self._response.headers


def check_answer(response: httpx.Response) -> None:
    """Refuses what is no stream, although the server calls it a success."""
    kind = response.headers.get("content-type", "")
    if response.status_code != httpx.codes.OK or kind.partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise UsageError(f"{response.url} answered {response.status_code} {shown(kind)}, not a stream of Tape")
