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
        self._under_way: Sequence[_Waiting] = ()
        self._events = 0
        self._bytes = 0
        self._asked = 0
        self._answered = 0
        self._work = asyncio.Event()
        self._answer = asyncio.Event()
        self._is_closed = False

    def append(self, request: Request) -> "asyncio.Future[Sequence[Entry]]":
        """Its entries, once they are as durable as the store makes them; its place in the queue is taken at once."""
        if self._is_closed:
            raise Unavailable("the journal is closed")
        if self._events >= QUEUE_EVENTS or self._bytes >= QUEUE_BYTES:
            raise LimitReached(f"{self._events:,} events wait to be appended already; come back later")
        done: asyncio.Future[Sequence[Entry]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(request, done))
        self._events += len(request.events)
        self._bytes += request.size
        self._asked += 1
        self._work.set()
        return done

    async def drain(self) -> None:
        """Until everything asked for so far is answered, whoever still waits for it."""
        asked = self._asked
        while self._answered < asked:
            self._answer.clear()
            await self._answer.wait()

    async def run(self) -> NoReturn:
        try:
            while True:
                await self._work.wait()
                while self._queue:
                    await self._send(self._take())
                self._work.clear()
        finally:
            self._close()

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
        return group

    async def _send(self, group: Sequence[_Waiting]) -> None:
        """One call for all that are still wanted; when a value fails it, one call each, so that it fails alone."""
        self._under_way = [waiting for waiting in group if not waiting.done.done()]
        outcomes = await self._outcomes([waiting.request for waiting in self._under_way])
        if len(outcomes) == len(self._under_way):
            self._settle(self._under_way, outcomes)
            self._count(len(group))
        else:
            for waiting in group:
                await self._send([waiting])

    async def _outcomes(self, requests: Sequence[Request]) -> Sequence[Sequence[Entry] | Exception]:
        """What became of each, or one error when it is not known whose it is."""
        try:
            return await self._journal.append(requests) if requests else ()
        except Unavailable as error:
            return [Unavailable(error.reason, error.outcome) for _ in requests]
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to one of these requests
            return [error]

    def _settle(self, group: Sequence[_Waiting], outcomes: Sequence[Sequence[Entry] | Exception]) -> None:
        self._appended([entry for outcome in outcomes if not isinstance(outcome, Exception) for entry in outcome])
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.done.done():
                continue
            if isinstance(outcome, Exception):
                waiting.done.set_exception(outcome)
            else:
                waiting.done.set_result(outcome)

    def _count(self, answered: int) -> None:
        self._under_way = ()
        self._answered += answered
        self._answer.set()

    def _close(self) -> None:
        """Nobody is left waiting: what was under way may be in, what was queued is not."""
        self._is_closed = True
        for waiting in self._under_way:
            self._settle([waiting], [Unavailable("the journal was closed", "unknown")])
        for waiting in self._queue:
            self._settle([waiting], [Unavailable("the journal was closed")])
        self._count(self._asked - self._answered)
