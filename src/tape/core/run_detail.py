"""All that is known of a run: its record, its state in its ledger, and what it still owes."""

from dataclasses import dataclass

from tape.core.ids import Epoch
from tape.core.obligation import Obligation
from tape.core.run import RunRecord
from tape.core.run_state import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """A run in full; one that was only opened has no ledger. `obligations` are those that are not met."""

    record: RunRecord
    epoch: Epoch
    ledger: RunState | None = None
    obligations: tuple[Obligation, ...] = ()
