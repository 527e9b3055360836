"""Forwarding the journal: entries go to a peer or to a function, in their order and at least once."""

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

import anyio

from tape.bridges.message import fields_of_entry, message_of
from tape.bridges.peer import NoAnswer, PeerConnection
from tape.bridges.peers import peer_of_target
from tape.bus.journal import Journal
from tape.core.background import background
from tape.core.event import Entry
from tape.outbox.cursor_file import CursorFile
from tape.outbox.handling import is_async
from tape.settings import Settings
from tape.work.shutdown import until_signal

EVERYTHING: Final = "/tape/**"
SAVE_INTERVAL_S: Final = 0.2
RETRY_S: Final = 0.5

Forward: TypeAlias = Callable[[Entry], Awaitable[None]]
Destination: TypeAlias = str | Callable[[Entry], object]


async def forward_journal(
    journal: Journal, to: Destination, cursor: Path, pattern: str = EVERYTHING, once: bool = False
) -> int:
    """Forwards to a target or a function until a signal stops it, or once to the head; returns how many entries."""
    async with _open_destination(to) as forward:
        forwarder = JournalForwarder(journal, forward, CursorFile(cursor), pattern)
        await (forwarder.run(follow=False) if once else until_signal(forwarder.run, forwarder.stop))
    return forwarder.forwarded


@asynccontextmanager
async def _open_destination(to: Destination) -> AsyncIterator[Forward]:
    if callable(to):
        yield to_function(to)
        return
    peer, topic = peer_of_target(to, Settings.read(os.environ).connections)
    try:
        yield to_peer(peer, topic)
    finally:
        await peer.close()


def to_peer(peer: PeerConnection, topic: str) -> Forward:
    """Sends each entry until the peer acknowledges it; the peer drops duplicates by the message's key."""

    async def forward(entry: Entry) -> None:
        message = message_of(fields_of_entry(entry), peer.config.body_format)
        while True:
            with suppress(NoAnswer):
                return await peer.send(topic, message)
            await anyio.sleep(RETRY_S)

    return forward


def to_function(function: Callable[[Entry], object]) -> Forward:
    """Calls a function, plain or async."""

    async def forward(entry: Entry) -> None:
        if is_async(function):
            answer = function(entry)
        else:
            answer = await anyio.to_thread.run_sync(partial(function, entry))
        if inspect.isawaitable(answer):
            await answer

    return forward


class JournalForwarder:
    """Forwards entries after the position in its cursor file, and saves its position there."""

    def __init__(self, journal: Journal, forward: Forward, cursor: CursorFile, pattern: str = EVERYTHING) -> None:
        self._journal = journal
        self._forward = forward
        self._cursor = cursor
        self._pattern = pattern
        self.forwarded = 0
        self._position = self._saved = -1
        self._epoch = 0
        self._scope = anyio.CancelScope()

    async def run(self, *, follow: bool = True) -> int:
        """Forwards up to the head, and with `follow` new entries too; returns how many."""
        self._position, self._epoch = await self._cursor.read(self._journal)
        try:
            with self._scope:
                async with background(self._save_periodically):
                    await self._forward_all(follow)
        finally:
            self._save()
        return self.forwarded

    def stop(self) -> None:
        """Stops at once; the entry being forwarded may be forwarded again by the next run."""
        self._scope.cancel()

    async def _forward_all(self, follow: bool) -> None:
        stream = self._journal.stream(
            subject=self._pattern, from_global_seq=self._position, follow=follow, epoch=self._epoch
        )
        async with aclosing(stream) as entries:
            async for entry in entries:
                await self._forward(entry)
                self._position, self._epoch = entry.global_seq, max(self._epoch, entry.epoch)
                self.forwarded += 1

    async def _save_periodically(self) -> NoReturn:
        """Saving after each entry would cost an fsync each; a stale position only repeats a few entries."""
        while True:
            await anyio.sleep(SAVE_INTERVAL_S)
            self._save()

    def _save(self) -> None:
        if self._position != self._saved:
            self._cursor.write(self._position, self._epoch)
            self._saved = self._position
