"""Signed webhooks after Standard Webhooks: all attempts share one id; each has its own timestamp."""

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
from tape.bridges.config import WebhookConfig
from tape.bridges.message import Message, header
from tape.bridges.peer import NoAnswer, PeerUnavailable
from tape.work.answers import Dead, Retry

MAX_REASON: Final = 200
REASON_S: Final = 0.2
BUSY: Final = frozenset({408, 425, 429, 502, 503})
GATEWAY_TIMEOUT: Final = 504
FINAL: Final = frozenset({400, 405, 406, 409, 410, 411, 413, 414, 415, 422, 431})


class WebhookPeer:
    """An HTTP endpoint. Redirects are not followed."""

    def __init__(self, config: WebhookConfig, keys: Sequence[bytes]) -> None:
        self._url = config.url
        self._keys = keys
        self._deadline_s = 0.9 * config.deadline_s  # before the deadline of PeerConnection, which knows no reason
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=config.slots,
            network_backend=GuardedNetwork(config.networks),
        )

    async def send(self, topic: str, message: Message) -> None:
        """Without an answer: `NoAnswer` once the request was being written, else `PeerUnavailable`."""
        progress = _Progress()
        try:
            with anyio.fail_after(self._deadline_s):
                status, reason, retry_after = await self._post(message, progress)
        except TimeoutError as error:
            within = f"within {self._deadline_s:g} s"
            if progress.is_writing:
                raise NoAnswer(f"no answer {within}") from error
            raise PeerUnavailable(f"no connection {within}") from error
        except httpcore.LocalProtocolError as error:
            raise Dead(f"the message cannot be sent: {error}") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise PeerUnavailable(f"{type(error).__name__}: {error}") from error
        if not 200 <= status < 300:
            raise error_of(status, reason, retry_after)

    async def _post(self, message: Message, progress: "_Progress") -> tuple[int, str, bytes]:
        headers, extensions = self._headers(message, round(time.time())), {"trace": progress.on_trace}
        request = self._pool.stream("POST", self._url, headers=headers, content=message.body, extensions=extensions)
        async with request as response:
            reason = await _reason(response)
            return response.status, reason, dict(response.headers).get(b"retry-after", b"")
        raise AssertionError("httpcore suppresses no exception")

    async def close(self) -> None:
        await self._pool.aclose()

    def _headers(self, message: Message, now_s: int) -> dict[bytes | str, bytes | str]:
        key_id = header(message.key)
        headers: dict[bytes | str, bytes | str] = {
            "content-type": message.content_type,
            "user-agent": "tape",
            "webhook-id": key_id,
            "webhook-timestamp": str(now_s),
            "webhook-signature": " ".join(sign(key, key_id, now_s, message.body) for key in self._keys),
        }
        headers.update((name, header(value)) for name, value in message.extra_headers.items())
        return headers


class _Progress:
    """Whether httpcore has begun to write the request."""

    def __init__(self) -> None:
        self.is_writing = False

    async def on_trace(self, name: str, _: object) -> None:
        self.is_writing = self.is_writing or name == "http11.send_request_headers.started"


async def connect(config: WebhookConfig) -> WebhookPeer:
    return WebhookPeer(config, config.keys)


def sign(key: bytes, key_id: str, now_s: int, body: bytes) -> str:
    """The signature over id, timestamp and body."""
    signed = hmac.digest(key, f"{key_id}.{now_s}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def error_of(status: int, reason: str, retry_after: bytes) -> Exception:
    """The error for a status that is not 2xx: wait for the endpoint, reject the message, or retry."""
    message = f"HTTP {status}: {reason}" if reason else f"HTTP {status}"
    if status in BUSY:
        return PeerUnavailable(message, retry_after_s=float(retry_after) if retry_after.isdigit() else None)
    if status == GATEWAY_TIMEOUT:
        return NoAnswer(message)
    if 300 <= status < 400:
        return Dead(f"{message}; redirects are not followed")
    return Dead(message) if status in FINAL else Retry(message)


async def _reason(response: httpcore.Response) -> str:
    """The start of the response body in one line; reading stops after a short time."""
    body = b""
    with anyio.move_on_after(REASON_S):
        async for chunk in response.aiter_stream():
            body += chunk
            if len(body) >= MAX_REASON:
                break
    text = body[:MAX_REASON].decode(errors="replace")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
