"""The connection to one peer. While the peer is unavailable its messages wait here and slow no other bridge."""

import random
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio

from tape.bridges.config import PeerConfig
from tape.bridges.message import Message
from tape.telemetry import log
from tape.work.answers import Release, Retry

FIRST_BACKOFF_S: Final = 0.05
LONGEST_BACKOFF_S: Final = 5.0


class PeerUnavailable(Exception):
    """The peer cannot be reached or is overloaded; the message itself may be fine, so no attempt is counted.

    `retry_after_s` is the peer's own request. With `is_lost` the next send makes a new connection.
    """

    def __init__(self, reason: str, *, retry_after_s: float | None = None, is_lost: bool = False) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        self.is_lost = is_lost


class NoAnswer(Retry):
    """The peer received the message and did not acknowledge it; this counts as an attempt."""


class Peer(Protocol):
    """A message broker or an endpoint.

    When `send` returns, the peer has acknowledged the message. It raises `PeerUnavailable` when the message was not
    sent, `Dead` with the peer's reason when the peer rejects the message, `NoAnswer` when no acknowledgement came, and
    any other error when another attempt may help.
    """

    async def send(self, topic: str, message: Message) -> None: ...
    async def close(self) -> None: ...


Connect = Callable[[], Awaitable[Peer]]


class PeerConnection:
    """One peer, shared by many handlers: connects with the first message, and again after the connection is lost."""

    def __init__(self, config: PeerConfig, connect: Connect) -> None:
        self.config = config
        self.name = config.name
        self._connect = connect
        self._peer: Peer | None = None
        self._connecting = anyio.Lock()
        self._is_stopping = anyio.Event()
        self._is_unavailable = False

    def stop(self) -> None:
        """Stops waiting for the peer: a message that it does not take at once is released without an attempt."""
        self._is_stopping.set()

    async def send(self, topic: str, message: Message) -> None:
        """Returns when the peer has acknowledged the message, however long the peer was unavailable."""
        backoff_s = FIRST_BACKOFF_S
        while True:
            try:
                await self._try(topic, message)
            except (PeerUnavailable, TimeoutError, OSError) as error:
                await self._mark_unavailable(error)
                requested_s = error.retry_after_s if isinstance(error, PeerUnavailable) else None
                await self._wait(backoff_s * random.uniform(0.5, 1.0) if requested_s is None else requested_s)
                backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)
            else:
                self._mark_available()
                return

    async def close(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            with anyio.move_on_after(self.config.deadline_s, shield=True):
                await peer.close()

    async def _try(self, topic: str, message: Message) -> None:
        with anyio.fail_after(self.config.deadline_s):
            async with self._connecting:
                if self._peer is None:
                    self._peer = await self._connect()
            await self._peer.send(topic, message)

    async def _mark_unavailable(self, error: Exception) -> None:
        if isinstance(error, PeerUnavailable) and error.is_lost:
            await self.close()
        if not self._is_unavailable:
            self._is_unavailable = True
            log.warning("bridge.unavailable", connection=self.name, reason=f"{type(error).__name__}: {error}")

    def _mark_available(self) -> None:
        if self._is_unavailable:
            self._is_unavailable = False
            log.info("bridge.recovered", connection=self.name)

    async def _wait(self, seconds: float) -> None:
        with anyio.move_on_after(min(seconds, LONGEST_BACKOFF_S)):
            await self._is_stopping.wait()
        if self._is_stopping.is_set():
            raise Release(f"the worker stopped while {self.name} was unavailable")
