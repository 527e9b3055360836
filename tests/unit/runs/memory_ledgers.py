"""Ledgers in memory for transitions without a store; the test moves the clock."""

from datetime import timedelta
from typing import TypeVar

from tape.core.ids import RunId
from tape.core.ports import CellSnapshot
from tape.core.run_state import Invocation, RunClaim, RunSpec, RunState, RunStatus
from tape.core.sequence import Cell, CellId
from tape.runs import lifecycle
from tape.runs.ledger import LedgerEvent, Transition

T = TypeVar("T")

MINUTE = timedelta(minutes=1)


class MemoryLedgers:
    """The cells a store would hold, and the entries of the journal."""

    def __init__(self) -> None:
        self.cells: dict[CellId, Cell] = {}
        self.events: list[LedgerEvent] = []
        self.now_ms = 1_000_000

    @property
    def snapshot(self) -> CellSnapshot:
        return CellSnapshot(self.now_ms, dict(self.cells))

    def write(self, transition: Transition[T]) -> T:
        """Applies a transition as a store does: all of it or nothing, and nothing on a stale version."""
        for change in transition.cells:
            found = self.cells.get(change.id)
            assert change.seen == (found.version if found else 0), f"{change.id} was decided on another version"
        self.cells.update((change.id, change.cell) for change in transition.cells)
        self.events += transition.events
        if transition.error is not None:
            raise transition.error
        return transition.result

    def passes(self, time: timedelta) -> None:
        self.now_ms += time // timedelta(milliseconds=1)

    def verbs(self, kind: str) -> list[str]:
        """The verbs of a kind's entries, in order."""
        return [event.verb for event in self.events if event.kind == kind]

    def begin(self, owner: str = "worker", *, name: str = "1", scopes: tuple[str, ...] = ()) -> RunState:
        return self.begun(owner, name=name, scopes=scopes).run

    def begun(self, owner: str = "worker", *, name: str = "1", scopes: tuple[str, ...] = ()) -> RunClaim:
        of = Invocation(app="treasury", user="ann", session="s", invocation=name)
        return self.write(lifecycle.begin(self.snapshot, RunSpec(of=of, owner=owner, scopes=scopes)))

    def end(self, run_id: RunId, status: RunStatus, fence: int | None = None) -> RunState:
        return self.write(lifecycle.end(self.snapshot, run_id, status, fence=fence))
