"""Cancelling a run, whoever goes on in it: the worker of a ledger, or somebody who just appends."""

from tape.bus.journal import Journal
from tape.core.codec import encode
from tape.core.errors import NotFound
from tape.core.event import check_run_id
from tape.core.ids import Seq
from tape.core.run_state import RunStatus
from tape.runs.ledgers import Ledgers


async def is_begun(ledgers: Ledgers, run_id: str) -> bool:
    """Whether a ledger knows the run; one that was merely opened has none."""
    try:
        await ledgers.runs.find(run_id)
    except NotFound:
        return False
    return True


async def cancel(journal: Journal, ledgers: Ledgers | None, run_id: str, reason: str) -> Seq:
    """Ends a run as cancelled, and says why; where it ended, or where it is if it still has to undo something."""
    run = check_run_id(run_id)
    if ledgers is None or not await is_begun(ledgers, run):
        return await journal.end_run(run, "cancelled", reason)
    await ledgers.runs.end(run, RunStatus.CANCELLED, encode({"reason": reason}))
    return await ledgers.last_seq(run)
