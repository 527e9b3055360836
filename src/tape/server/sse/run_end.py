"""The last frame of a run's stream: why it ends, after which id, and the run's state."""

from contextlib import suppress
from typing import Final

from tape.core.errors import NotFound
from tape.core.ids import RunId
from tape.core.ports import RunDirectory
from tape.core.run import RunActivity
from tape.operations.runs import GetRun
from tape.runs.ledgers import LocalLedgers
from tape.wire.frames import RunEnd

CLOSED: Final = "closed"
REAPED: Final = "reaped"


class RunEndFrames:
    """Builds run_end frames; without ledgers every ended run is complete."""

    def __init__(self, runs: RunDirectory, ledgers: LocalLedgers | None = None) -> None:
        self._runs = runs
        self._ledgers = ledgers

    async def of(self, run_id: RunId, last_id: int) -> RunEnd:
        """The end of a run whose reader has everything up to an id."""
        record = await self._runs.find(run_id)
        reason = REAPED if record is None or record.is_reaped else CLOSED
        return RunEnd(reason=reason, last_event_id=last_id, state=await self._state(run_id))

    async def _state(self, run_id: RunId) -> str:
        """The state in the run's ledger; a run without one is complete here, even if it has been opened again."""
        if self._ledgers is not None:
            with suppress(NotFound):  # a run that was only opened has no ledger
                return (await self._ledgers.call(GetRun(run_id=run_id))).status
        return RunActivity.COMPLETE
