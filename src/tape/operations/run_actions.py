"""Reads the decisions and effects of a run."""

from tape.core.ids import RunId
from tape.core.ledger_diff import RunActions
from tape.operations.effects import ListDecisions, ListEffects
from tape.operations.ledgers import Ledgers
from tape.operations.whole_list import read_all


async def read_actions(ledgers: Ledgers, run_id: RunId) -> RunActions:
    decisions = await read_all(ledgers, ListDecisions(run_id=run_id))
    return RunActions(run_id=run_id, decisions=decisions, effects=await read_all(ledgers, ListEffects(run_id=run_id)))
