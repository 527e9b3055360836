"""Group commit: requests that arrive while one commit runs go into the next; there is no timer."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, NoReturn

from tape.core.errors import LimitReached, Unavailable
from tape.core.event import Entry
from tape.core.ports import Journal
from tape.core.sequence import MAX_BYTES, MAX_EVENTS, AppendRequest

QUEUE_EVENTS: Final = 20_000
QUEUE_BYTES: Final = 64 << 20


class _Pending(NamedTuple):
    request: AppendRequest
    done: "asyncio.Future[Sequence[Entry]]"


class Appender:
    """Appends requests to a journal in groups, in order of arrival, and completes each with its own outcome."""

    def __init__(self, journal: Journal, on_appended: Callable[[Sequence[Entry]], None]) -> None:
        self._journal = journal
        self._on_appended = on_appended
        self._queue: deque[_Pending] = deque()
        self._in_flight: Sequence[_Pending] = ()
        self._events = 0
        self._bytes = 0
        self._submitted = 0
        self._completed = 0
        self._has_work = asyncio.Event()
        self._has_completed = asyncio.Event()
        self._is_closed = False

    def append(self, request: AppendRequest) -> "asyncio.Future[Sequence[Entry]]":
        """Queues a request at once; the future has its entries when they are as durable as the store makes them."""
        if self._is_closed:
            raise Unavailable("the journal is closed")
        if self._events >= QUEUE_EVENTS or self._bytes >= QUEUE_BYTES:
            raise LimitReached(f"{self._events:,} events wait to be appended already; come back later")
        done: asyncio.Future[Sequence[Entry]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Pending(request, done))
        self._events += len(request.events)
        self._bytes += request.size
        self._submitted += 1
        self._has_work.set()
        return done

    async def drain(self) -> None:
        """Returns when every request submitted so far has completed, also those whose callers are gone."""
        submitted = self._submitted
        while self._completed < submitted:
            self._has_completed.clear()
            await self._has_completed.wait()

    async def run(self) -> NoReturn:
        try:
            while True:
                await self._has_work.wait()
                while self._queue:
                    await self._send(self._next_group())
                self._has_work.clear()
        finally:
            self._close()

    def _next_group(self) -> list[_Pending]:
        """Removes as many requests from the queue as one call may carry."""
        group: list[_Pending] = []
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

    async def _send(self, group: Sequence[_Pending]) -> None:
        """One call for all that were not cancelled; if one request fails the call, one call each."""
        self._in_flight = [pending for pending in group if not pending.done.done()]
        outcomes = await self._outcomes([pending.request for pending in self._in_flight])
        if len(outcomes) == len(self._in_flight):
            self._settle(self._in_flight, outcomes)
            self._count(len(group))
        else:
            for pending in group:
                await self._send([pending])

    async def _outcomes(self, requests: Sequence[AppendRequest]) -> Sequence[Sequence[Entry] | Exception]:
        """An outcome for each request, or one error if it is not known which request caused it."""
        try:
            return await self._journal.append(requests) if requests else ()
        except Unavailable as error:
            return [Unavailable(error.reason, error.outcome) for _ in requests]
        except Exception as error:  # noqa: BLE001 - whatever it is, one of these requests caused it
            return [error]

    def _settle(self, group: Sequence[_Pending], outcomes: Sequence[Sequence[Entry] | Exception]) -> None:
        self._on_appended([entry for outcome in outcomes if not isinstance(outcome, Exception) for entry in outcome])
        for pending, outcome in zip(group, outcomes, strict=True):
            if pending.done.done():
                continue
            if isinstance(outcome, Exception):
                pending.done.set_exception(outcome)
            else:
                pending.done.set_result(outcome)

    def _count(self, completed: int) -> None:
        self._in_flight = ()
        self._completed += completed
        self._has_completed.set()

    def _close(self) -> None:
        """Fails what is left: requests in flight may have been written, queued ones were not."""
        self._is_closed = True
        for pending in self._in_flight:
            self._settle([pending], [Unavailable("the journal was closed", "unknown")])
        for pending in self._queue:
            self._settle([pending], [Unavailable("the journal was closed")])
        self._count(self._submitted - self._completed)
