"""Cancels a run, whether a worker holds it in its ledger or a producer only appends to it."""

from contextlib import suppress

from tape.bus.journal import Journal
from tape.core.codec import encode
from tape.core.errors import Conflict, NotFound
from tape.core.event import check_run_id
from tape.core.ids import Seq
from tape.core.run_state import RunStatus
from tape.operations.runs import EndRun, GetRun
from tape.runs.ledgers import Ledgers


async def is_begun(ledgers: Ledgers, run_id: str) -> bool:
    """Whether the run was begun in its ledger, and not merely opened."""
    try:
        await ledgers.call(GetRun(run_id=run_id))
    except NotFound:
        return False
    return True


async def cancel(journal: Journal, ledgers: Ledgers | None, run_id: str, reason: str) -> Seq:
    """Cancels a run with a reason; returns its last seq, which still grows if the run has to undo effects."""
    run = check_run_id(run_id)
    if ledgers is None or not await is_begun(ledgers, run):
        return await journal.end_run(run, "cancelled", reason)
    with suppress(Conflict):  # a run that has ended is not changed
        await ledgers.call(EndRun(run_id=run, status=RunStatus.CANCELLED, detail_json=encode({"reason": reason})))
    return await ledgers.last_seq(run)
