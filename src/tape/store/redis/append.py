"""The append: one call of one script for each group; a call whose result is lost is repeated and counts once."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import anyio

from tape.core.errors import Corrupt, Unavailable, UsageError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId
from tape.core.ports import AppendOutcome
from tape.core.sequence import AppendRequest, KeyRecord
from tape.store.redis.call import EXACT, AppendCall, AppendResult, Judged, read_result
from tape.store.redis.packing import rows_of, unpack
from tape.store.redis.scripts import APPEND, READ
from tape.store.redis.server import Server

KEY_TTL: Final = timedelta(days=60)
RETRY_S: Final = 0.1


class Appender:
    """Appends group by group.

    Calls are numbered, and Redis keeps the result of the last one. After a lost connection the same call is sent again:
    if it ran the first time, Redis returns the kept result, else it runs now. If the first message still arrives, its
    number is taken.
    """

    def __init__(self, server: Server, keep_per_run: int, recovery_s: float) -> None:
        self._server = server
        self._keep_per_run = keep_per_run
        self._recovery_s = recovery_s
        self._name = os.urandom(8).hex()
        self._number = 0
        self._lock = anyio.Lock(fast_acquire=True)

    async def append(self, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        """One outcome for each request; requests that change cells are refused, because Redis has none."""
        sent = [request for request in requests if not request.cells]
        outcomes = iter(await self._append(sent) if sent else ())
        return [_no_cells() if request.cells else next(outcomes) for request in requests]

    async def _append(self, requests: Sequence[AppendRequest]) -> list[AppendOutcome]:
        call, seen = AppendCall(requests), self._server.data_set
        async with self._lock:
            self._number += 1
            ttl_ms = KEY_TTL // timedelta(milliseconds=1)
            arguments = call.arguments(self._name, self._number, seen.epoch, seen.head, self._keep_per_run, ttl_ms)
            result = await self._result(arguments)
        judged = list(call.outcomes(result))
        seen.observe(result.epoch, _head(result, judged))
        return [await self._outcome(*pair, result.epoch) for pair in zip(requests, judged, strict=True)]

    async def _result(self, arguments: list[bytes]) -> AppendResult:
        try:
            return read_result(await self._server.run(APPEND, *arguments))
        except Unavailable as error:
            if error.outcome == "nothing":
                raise
            return await self._recover(arguments, error)

    async def _recover(self, arguments: list[bytes], lost: Unavailable) -> AppendResult:
        """Repeats a call whose outcome is unknown until it is resulted."""
        with anyio.move_on_after(self._recovery_s):
            while True:
                try:
                    return read_result(await self._server.run(APPEND, *arguments))
                except Unavailable:
                    await anyio.sleep(RETRY_S)
        raise lost

    async def _outcome(self, request: AppendRequest, judged: Judged, epoch: Epoch) -> AppendOutcome:
        """The entries that a request wrote the first time, or its own events if those were trimmed."""
        if not isinstance(judged, KeyRecord):
            return judged
        try:
            stored = await self._stored(judged)
        except Unavailable as error:  # the other requests of its group were written, so only this one is unknown
            return Unavailable(error.reason, "unknown")
        except Corrupt as error:
            return error
        return stored if len(stored) == len(judged.seqs) else judged.entries(request.events, epoch)

    async def _stored(self, record: KeyRecord) -> list[Entry]:
        size = len(record.seqs)
        *_, page = await self._server.ask(READ, size, EXACT, record.first - 1, size, "")
        entries = [unpack(RunId(run_id.decode()), *row) for run_id, *row in rows_of(page, 4)]
        return [entry for entry in entries if entry.global_seq < record.first + size]


def _head(result: AppendResult, judged: Sequence[Judged]) -> GlobalSeq:
    """The head of the journal after a call."""
    return GlobalSeq(result.base + sum(len(outcome) for outcome in judged if isinstance(outcome, list)))


def _no_cells() -> UsageError:
    return UsageError("redis:// has no ledgers: a request with cells needs memory://, sqlite:// or postgresql://")
