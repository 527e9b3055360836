"""Settling: writes the outcomes of attempts to the queue, many at once."""

import anyio

from tape.core.errors import TapeError
from tape.core.ports import Queue
from tape.core.task import Released, Settlement
from tape.telemetry import log
from tape.work.attempt import AttemptResults
from tape.work.claiming import Claimer
from tape.work.outages import Outage


class Settler:
    """Settles together what ended while it settled the last attempts, and frees their slots."""

    def __init__(self, queue: Queue, results: AttemptResults, claimer: Claimer, outage: Outage) -> None:
        self.handled = 0
        self._queue = queue
        self._results = results
        self._claimer = claimer
        self._outage = outage

    async def run(self) -> None:
        while True:
            ended = await self._results.take()
            await self._settle(
                [
                    Settlement(task.claim, attempt.outcome)
                    for attempt in ended
                    if attempt.outcome is not None
                    for task in attempt.tasks
                ]
            )
            self._claimer.release(ended)

    async def _settle(self, settlements: list[Settlement]) -> None:
        """Settles, after an outage of the store if need be."""
        while settlements:
            try:
                with anyio.CancelScope(shield=True):
                    answers = await self._queue.settle(settlements)
            except TapeError as error:
                await self._outage.wait(error)
                continue
            for stale in filter(None, answers):
                log.warning("task.stale", reason=str(stale))
            self.handled += sum(not isinstance(each.outcome, Released) for each in settlements)
            return
