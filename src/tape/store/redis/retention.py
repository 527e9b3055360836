"""Trims the journal without changing a position or a seq."""

from typing import Final

from tape.core.errors import RunNotFound, UsageError
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Bounds, Reader
from tape.core.run import Head
from tape.store.redis.runs import known_head
from tape.store.redis.scripts import FORGET_KEYS, TRIM, TRIM_RUN
from tape.store.redis.server import Server

STEP: Final = 100  # runs or keys in one script, so that others do not wait long


class Retention:
    """Trims the journal, runs and keys."""

    def __init__(self, server: Server, journal: Reader) -> None:
        self._server = server
        self._journal = journal

    async def trim(self, through: GlobalSeq) -> Bounds:
        rank, found = 0, STEP
        while found == STEP:
            found, head = await self._server.run(TRIM, through, rank, STEP)
            rank += STEP
            if found < 0:
                raise UsageError(f"cannot trim through {through}: the head is {int(head)}")
        return await self._journal.bounds()

    async def trim_run(self, run_id: RunId, keep: int) -> Head:
        verdict, *found = await self._server.run(TRIM_RUN, run_id, keep)
        if verdict == b"missing":
            raise RunNotFound(run_id)
        return known_head(*found)

    async def forget_keys(self, before_ms: int) -> int:
        total, found = 0, STEP
        while found == STEP:
            forgotten, found = await self._server.run(FORGET_KEYS, before_ms, STEP)
            total += forgotten
        return total
