"""Grouping: what arrives while a commit runs leaves with the next one; there is no timer."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, NoReturn

from tape.core.errors import LimitReached, Unavailable
from tape.core.event import Entry
from tape.core.ports import Journal
from tape.core.sequence import MAX_BYTES, MAX_EVENTS, Request

QUEUE_EVENTS: Final = 20_000
QUEUE_BYTES: Final = 64 << 20


class _Waiting(NamedTuple):
    request: Request
    done: "asyncio.Future[Sequence[Entry]]"


class Appender:
    """Sends requests to a journal in groups, in the order they came, and tells each its own outcome."""

    def __init__(self, journal: Journal, appended: Callable[[Sequence[Entry]], None]) -> None:
        self._journal = journal
        self._appended = appended
        self._queue: deque[_Waiting] = deque()
        self._events = 0
        self._bytes = 0
        self._work = asyncio.Event()
        self._newest: asyncio.Future[Sequence[Entry]] | None = None

    def append(self, request: Request) -> "asyncio.Future[Sequence[Entry]]":
        """Its entries, once they are as durable as the store makes them; its place in the queue is taken at once."""
        if self._events >= QUEUE_EVENTS or self._bytes >= QUEUE_BYTES:
            raise LimitReached(f"{self._events:,} events wait to be appended already; come back later")
        done: asyncio.Future[Sequence[Entry]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(request, done))
        self._events += len(request.events)
        self._bytes += request.size
        self._newest = done
        self._work.set()
        return done

    async def drain(self) -> None:
        """Until everything asked for so far has its outcome."""
        if self._newest is not None and not self._newest.done():
            await asyncio.wait((self._newest,))

    async def run(self) -> NoReturn:
        while True:
            await self._work.wait()
            while self._queue:
                await self._send(self._take())
            self._work.clear()

    def _take(self) -> list[_Waiting]:
        """The longest beginning of the queue that one call may carry."""
        group: list[_Waiting] = []
        events = size = 0
        while self._queue:
            request = self._queue[0].request
            events += len(request.events)
            size += request.size
            if group and (events > MAX_EVENTS or size > MAX_BYTES):
                break
            self._events -= len(request.events)
            self._bytes -= request.size
            group.append(self._queue.popleft())
        return [waiting for waiting in group if not waiting.done.done()]

    async def _send(self, group: Sequence[_Waiting]) -> None:
        """One call for all; when a value fails it, one call each, so that it fails alone."""
        try:
            outcomes: Sequence[Sequence[Entry] | Exception] = await self._journal.append(
                [waiting.request for waiting in group]
            )
        except Unavailable as error:
            outcomes = [error] * len(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to one of these requests
            outcomes = [error]
        if len(outcomes) == len(group):
            self._settle(group, outcomes)
        else:
            for waiting in group:
                await self._send([waiting])

    def _settle(self, group: Sequence[_Waiting], outcomes: Sequence[Sequence[Entry] | Exception]) -> None:
        self._appended([entry for outcome in outcomes if not isinstance(outcome, Exception) for entry in outcome])
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.done.done():
                continue
            if isinstance(outcome, Exception):
                waiting.done.set_exception(outcome)
            else:
                waiting.done.set_result(outcome)
