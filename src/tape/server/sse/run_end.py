"""How the stream of a run ends: why, after which id, and how the run ended."""

from contextlib import suppress
from typing import Final

from tape.core.errors import NotFound
from tape.core.ids import RunId
from tape.core.ports import RunDirectory
from tape.core.run import RunActivity
from tape.runs.ledgers import Ledgers
from tape.wire.frames import RunEnd

CLOSED: Final = "closed"
REAPED: Final = "reaped"


class RunEndFrames:
    """What the last frame says of runs; stores without ledgers know that they are complete, and no more."""

    def __init__(self, runs: RunDirectory, ledgers: Ledgers | None = None) -> None:
        self._runs = runs
        self._ledgers = ledgers

    async def of(self, run_id: RunId, last_id: int) -> RunEnd:
        """The end of a run whose reader has everything up to an id."""
        record = await self._runs.find(run_id)
        reason = REAPED if record is None or record.is_reaped else CLOSED
        return RunEnd(reason=reason, last_event_id=last_id, state=await self._state(run_id))

    async def _state(self, run_id: RunId) -> str:
        """As its ledger says; any other run is complete where its stream ended, even if it is open again by now."""
        if self._ledgers is not None:
            with suppress(NotFound):  # a run that was only opened has no ledger
                return (await self._ledgers.runs.find(run_id)).status
        return RunActivity.COMPLETE
