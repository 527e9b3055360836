"""The relay of the journal: entries go to a peer or to a function, in their order and at least once."""

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

import anyio

from tape.bridges.line import Line, Unanswered
from tape.bridges.message import message_of, of_entry
from tape.bridges.opening import line_to
from tape.bus.journal import Journal
from tape.core.background import background
from tape.core.event import Entry
from tape.outbox.cursor_file import CursorFile
from tape.outbox.handling import is_async
from tape.settings import Settings
from tape.work.leaving import until_told

EVERYTHING: Final = "/tape/**"
SAVE_S: Final = 0.2
AGAIN_S: Final = 0.5

Forward: TypeAlias = Callable[[Entry], Awaitable[None]]
Goal: TypeAlias = str | Callable[[Entry], object]


async def relay_journal(journal: Journal, to: Goal, cursor: Path, pattern: str = EVERYTHING, once: bool = False) -> int:
    """Relays to a target or to a function until a signal says to leave, or once; how many entries."""
    async with _forwarding(to) as forward:
        relay = JournalRelay(journal, forward, CursorFile(cursor), pattern)
        await (relay.run(follow=False) if once else until_told(relay.run, relay.stop))
    return relay.forwarded


@asynccontextmanager
async def _forwarding(to: Goal) -> AsyncIterator[Forward]:
    if callable(to):
        yield to_function(to)
        return
    line, topic = line_to(to, Settings.read(os.environ).connections)
    try:
        yield to_line(line, topic)
    finally:
        await line.close()


def to_line(line: Line, topic: str) -> Forward:
    """Sends each entry over a line, whose peer knows a second one by its key, until it says that it has it."""

    async def forward(entry: Entry) -> None:
        message = message_of(of_entry(entry), line.connection.writes)
        while True:
            with suppress(Unanswered):
                return await line.send(topic, message)
            await anyio.sleep(AGAIN_S)

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


class JournalRelay:
    """Forwards entries from where its cursor file says, and writes down how far it has come."""

    def __init__(self, journal: Journal, forward: Forward, cursor: CursorFile, pattern: str = EVERYTHING) -> None:
        self._journal = journal
        self._forward = forward
        self._cursor = cursor
        self._pattern = pattern
        self.forwarded = 0
        self._place = self._saved = -1
        self._epoch = 0
        self._scope = anyio.CancelScope()

    async def run(self, *, follow: bool = True) -> int:
        """Forwards what there is, and with `follow` what comes; how many entries that were."""
        self._place, self._epoch = await self._cursor.read(self._journal)
        try:
            with self._scope:
                async with background(self._save_at_times):
                    await self._forward_all(follow)
        finally:
            self._save()
        return self.forwarded

    def stop(self) -> None:
        """Forwards nothing more; what is being forwarded may come again."""
        self._scope.cancel()

    async def _forward_all(self, follow: bool) -> None:
        stream = self._journal.stream(
            subject=self._pattern, from_global_seq=self._place, follow=follow, epoch=self._epoch
        )
        async with aclosing(stream) as entries:
            async for entry in entries:
                await self._forward(entry)
                self._place, self._epoch = entry.global_seq, max(self._epoch, entry.epoch)
                self.forwarded += 1

    async def _save_at_times(self) -> NoReturn:
        """A place that is a little old costs a few entries twice; one for each entry would cost a sync each."""
        while True:
            await anyio.sleep(SAVE_S)
            self._save()

    def _save(self) -> None:
        if self._place != self._saved:
            self._cursor.write(self._place, self._epoch)
            self._saved = self._place
