"""Where ledger operations are done: read the cells, decide, send one request; decide again if somebody was first."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import anyio

from tape import telemetry
from tape.bus.journal import Journal
from tape.core.caller import PLAIN, Caller
from tape.core.causation import current_cause
from tape.core.errors import Conflict, RunClosed, VersionConflict
from tape.core.ids import RunId
from tape.core.ports import DUE_START, Cells, CellSnapshot, DueCursor, Store, WorkFilter
from tape.core.run import Head
from tape.core.sequence import Cell, CellId, Request
from tape.runs.ledger import LedgerEvent, Transition
from tape.runs.lifecycle import cause_of

TRIES: Final = 256  # of n who want one cell, one gets it each time: the last has tried n times
PAGE: Final = 200

T = TypeVar("T")


class LedgerStore:
    """One store's ledgers, and the journal that their entries go to."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._runs = store.runs
        self.cells: Cells = store.cells
        self.journal = journal
        self._turns: WeakValueDictionary[CellId, anyio.Lock] = WeakValueDictionary()

    async def change(
        self, ids: tuple[CellId, ...], decide: Callable[[CellSnapshot], Transition[T]], caller: Caller = PLAIN
    ) -> T:
        """Decides on these cells, as often as it takes."""
        return await self.change_from(lambda: self.cells.snapshot(ids), decide, caller)

    async def change_from(
        self,
        read: Callable[[], Awaitable[CellSnapshot]],
        decide: Callable[[CellSnapshot], Transition[T]],
        caller: Caller,
    ) -> T:
        turn: AbstractAsyncContextManager[object] = nullcontext()
        was_closed = False
        for _ in range(TRIES):
            async with turn:
                snapshot = await read()
                transition = decide(snapshot)
                try:
                    await self._send(transition, snapshot, caller)
                except VersionConflict as lost:
                    turn = self._turn(CellId(lost.ledger, lost.key))
                    continue
                except RunClosed:
                    if was_closed:
                        raise
                    was_closed = True  # the run may have ended since it was looked at, and then it takes other things
                    continue
            if transition.error is not None:
                raise transition.error
            return transition.result
        raise Conflict(f"others have changed the same cells {TRIES} times meanwhile; come back later")

    def _turn(self, cell_id: CellId) -> anyio.Lock:
        """Who lost a race for a cell queues for it in this process: that guards nothing, but saves many more races."""
        return self._turns.setdefault(cell_id, anyio.Lock())

    async def now_ms(self, given: int | None = None) -> int:
        return given if given is not None else (await self.cells.snapshot(())).now_ms

    async def due(
        self, ledger: str, status: str, through_ms: int, served: WorkFilter | None = None, limit: int = PAGE
    ) -> AsyncGenerator[tuple[CellId, Cell], None]:
        """Every cell that is due and that can be served, earliest first; a reader of a few says how many."""
        after, page_size = DUE_START, PAGE if served is None else min(PAGE, limit)
        while page := await self.cells.due(ledger, status, through_ms, page_size, after, served):
            for cell_id, cell in page.items():
                after = DueCursor(cell.due_at_ms or 0, cell_id.key)
                yield cell_id, cell

    async def under(self, ledger: str, parent: str) -> Mapping[CellId, Cell]:
        """Every cell below a key."""
        found: dict[CellId, Cell] = {}
        after = ""
        while page := await self.cells.under(ledger, parent, PAGE, after):
            found.update(page)
            after = list(page)[-1].key
        return found

    async def head(self, run_id: RunId) -> Head:
        return (await self._runs.heads([run_id])).get(run_id, Head())

    async def _send(self, transition: Transition[T], snapshot: CellSnapshot, caller: Caller) -> None:
        if transition.cells or transition.events:
            traced = caller if caller.trace is not None else replace(caller, trace=telemetry.current_trace())
            events = tuple(event.to_event(_caused(traced, event, snapshot)) for event in transition.events)
            await self.journal.submit(Request(events=events, cells=transition.cells, opens=transition.opens))
        if transition.closes is not None:
            await self.journal.close_run(transition.closes)


def _caused(caller: Caller, event: LedgerEvent, snapshot: CellSnapshot) -> Caller:
    """Who names no cause answers to an entry, or speaks for a run that was begun for one."""
    if caller.cause is not None:
        return caller
    cause = current_cause()
    return replace(caller, cause=cause_of(snapshot, event.run_id) if cause is None else cause)
