"""Sends a response and adds the headers that every response has."""

from typing import Final

import anyio

from tape.server.http.request import Message, Request, Send

LINGER_S: Final = 1.0
EXPOSED: Final = b"etag, location, retry-after, x-tape-epoch"


class ResponseSender:
    """Sends a handler's messages, adds CORS headers, and records the status."""

    def __init__(self, request: Request, send: Send) -> None:
        self._request = request
        self._send = send
        self._closes = False
        self.origin: str | None = None
        self.route = ""
        self.status = ""

    @property
    def is_started(self) -> bool:
        return bool(self.status)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._request.is_unread and self._request.has_small_body:
                await self._linger()  # so that the connection can be reused
            self.status = str(message["status"])
            self._closes = self._request.is_unread
            message = {**message, "headers": [*message.get("headers", ()), *self._headers()]}
        elif self._closes and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body"}
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        headers = [(b"connection", b"close")] if self._closes else []
        if self.origin is not None:
            origin = self.origin.encode("latin-1")
            headers += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED)]
        return [*headers, (b"vary", b"Origin")]

    async def _linger(self) -> None:
        """Reads an unread body for a moment: closing while data arrives would reset the response."""
        with anyio.move_on_after(LINGER_S):
            await self._request.discard()
