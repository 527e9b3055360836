"""Signed webhooks, as Standard Webhooks has them: the id stays over all attempts, the timestamp is the attempt's."""

import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import Sequence
from typing import Final

import anyio
import httpcore

from tape.bridges.addresses import GuardedNetwork
from tape.bridges.connections import WebhookConnection
from tape.bridges.line import Away, Unanswered
from tape.bridges.message import Message, header
from tape.work.answers import Dead, Retry

MOST_REASON: Final = 200
REASON_S: Final = 0.2
BUSY: Final = frozenset({408, 425, 429, 502, 503})
GATEWAY_TIMEOUT: Final = 504
FINAL: Final = frozenset({400, 405, 406, 409, 410, 411, 413, 414, 415, 422, 431})


class WebhookPeer:
    """An endpoint. Nothing is followed: where it redirects to is nobody's business."""

    def __init__(self, connection: WebhookConnection, keys: Sequence[bytes]) -> None:
        self._url = connection.url
        self._keys = keys
        self._patience_s = 0.9 * connection.deadline_s  # less than the line's, which cannot tell what was waited for
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=connection.slots,
            network_backend=GuardedNetwork(connection.networks),
        )

    async def send(self, topic: str, message: Message) -> None:
        """An answer that does not come is the endpoint's word on this message, once it has begun to be told it."""
        begun = _Begun()
        try:
            with anyio.fail_after(self._patience_s):
                status, reason, retry_after = await self._ask(message, begun)
        except TimeoutError as error:
            said = f"within {self._patience_s:g} s"
            raise (Unanswered(f"no answer {said}") if begun.is_so else Away(f"no connection {said}")) from error
        except httpcore.LocalProtocolError as error:
            raise Dead(f"the message cannot be sent: {error}") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise Away(f"{type(error).__name__}: {error}") from error
        if not 200 <= status < 300:
            raise refusal(status, reason, retry_after)

    async def _ask(self, message: Message, begun: "_Begun") -> tuple[int, str, bytes]:
        headers, watch = self._headers(message, round(time.time())), {"trace": begun.hear}
        asked = self._pool.stream("POST", self._url, headers=headers, content=message.body, extensions=watch)
        async with asked as response:
            reason = await _reason(response)
            return response.status, reason, dict(response.headers).get(b"retry-after", b"")
        raise AssertionError("a connection swallows nothing")

    async def close(self) -> None:
        await self._pool.aclose()

    def _headers(self, message: Message, now_s: int) -> dict[bytes | str, bytes | str]:
        key_id = header(message.key)
        said: dict[bytes | str, bytes | str] = {
            "content-type": message.content_type,
            "user-agent": "tape",
            "webhook-id": key_id,
            "webhook-timestamp": str(now_s),
            "webhook-signature": " ".join(sign(key, key_id, now_s, message.body) for key in self._keys),
        }
        said.update((name, header(value)) for name, value in message.facts.items())
        return said


class _Begun:
    """Whether a request is on its way to an endpoint that has taken the connection."""

    def __init__(self) -> None:
        self.is_so = False

    async def hear(self, name: str, _: object) -> None:
        self.is_so = self.is_so or name == "http11.send_request_headers.started"


async def connect(connection: WebhookConnection) -> WebhookPeer:
    return WebhookPeer(connection, connection.keys)


def sign(key: bytes, key_id: str, now_s: int, body: bytes) -> str:
    """A signature of what is sent, when, and under which id."""
    signed = hmac.digest(key, f"{key_id}.{now_s}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def refusal(status: int, reason: str, retry_after: bytes) -> Exception:
    """What an answer that is no success means: wait, never again, or another attempt."""
    said = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
    if status in BUSY:
        return Away(said, after_s=float(retry_after) if retry_after.isdigit() else None)
    if status == GATEWAY_TIMEOUT:
        return Unanswered(said)
    if 300 <= status < 400:
        return Dead(f"{said}; redirects are not followed")
    return Dead(said) if status in FINAL else Retry(said)


async def _reason(response: httpcore.Response) -> str:
    """The beginning of what was answered, in one line; an answer without an end is not waited for."""
    begun = b""
    with anyio.move_on_after(REASON_S):
        async for chunk in response.aiter_stream():
            begun += chunk
            if len(begun) >= MOST_REASON:
                break
    text = begun[:MOST_REASON].decode(errors="replace")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
