"""Runs ledger operations: read cells, decide, send one request; on a version conflict, read and decide again."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import replace
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import anyio

from tape import telemetry
from tape.bus.journal import Journal
from tape.core.caller import PLAIN, Caller
from tape.core.causation import current_cause
from tape.core.errors import Conflict, NotFound, RunClosed, VersionConflict
from tape.core.ids import RunId
from tape.core.page import ANSWER_BYTES, Page, decode_cursor, encode_cursor, fit_answer
from tape.core.ports import DUE_START, CellQuery, Cells, CellSnapshot, DueCursor, Store, WorkFilter
from tape.core.run import Head
from tape.core.sequence import AppendRequest, Cell, CellId
from tape.operations.operation import PageRequest
from tape.runs.ledger import Ledger, LedgerEvent, Transition, parts
from tape.runs.lifecycle import NEWEST, cause_of

MAX_TRIES: Final = 256  # of n callers that change one cell, one succeeds each time, so the last one tries n times
PAGE: Final = 200

S = TypeVar("S")
T = TypeVar("T")


class LedgerStore:
    """The ledgers of one store, and the journal that gets their entries."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._runs = store.runs
        self.cells: Cells = store.cells
        self.journal = journal
        self._locks: WeakValueDictionary[CellId, anyio.Lock] = WeakValueDictionary()

    async def newest_run(self, app: str, user: str, session: str) -> RunId:
        """The run that was begun last in a session."""
        found = await self.find(NEWEST, parts(app, user, session))
        if found is None:
            raise NotFound(f"session {session!r} of {user!r} in {app!r} has no run")
        return found.run_id

    async def change(
        self, ids: tuple[CellId, ...], decide: Callable[[CellSnapshot], Transition[T]], caller: Caller = PLAIN
    ) -> T:
        """Decides on these cells, again after each conflict."""
        return await self.change_from(lambda: self.cells.snapshot(ids), decide, caller)

    async def change_from(
        self,
        read: Callable[[], Awaitable[CellSnapshot]],
        decide: Callable[[CellSnapshot], Transition[T]],
        caller: Caller,
    ) -> T:
        lock: AbstractAsyncContextManager[object] = nullcontext()
        was_closed = False
        for _ in range(MAX_TRIES):
            async with lock:
                snapshot = await read()
                transition = decide(snapshot)
                try:
                    await self._send(transition, snapshot, caller)
                except VersionConflict as lost:
                    lock = self._lock_of(CellId(lost.ledger, lost.key))
                    continue
                except RunClosed:
                    if was_closed:
                        raise
                    was_closed = True  # the run may have ended since it was read; decide once more
                    continue
            if transition.error is not None:
                raise transition.error
            return transition.result
        raise Conflict(f"others have changed the same cells {MAX_TRIES} times meanwhile; try again later")

    def _lock_of(self, cell_id: CellId) -> anyio.Lock:
        """Callers in this process that lost a race for a cell wait for each other; the lock guards nothing."""
        return self._locks.setdefault(cell_id, anyio.Lock())

    async def now_ms(self, given: int | None = None) -> int:
        return given if given is not None else (await self.cells.snapshot(())).now_ms

    async def due(
        self, ledger: str, status: str, through_ms: int, served: WorkFilter | None = None, limit: int = PAGE
    ) -> AsyncGenerator[tuple[CellId, Cell], None]:
        """Every due cell that matches the filter, earliest first; `limit` is how many the caller reads."""
        after, page_size = DUE_START, PAGE if served is None else min(PAGE, limit)
        while page := await self.cells.due(ledger, status, through_ms, page_size, after, served):
            for cell_id, cell in page.items():
                after = DueCursor(cell.due_at_ms or 0, cell_id.key)
                yield cell_id, cell

    async def due_states(
        self,
        ledger: Ledger[S],
        status: str,
        through_ms: int,
        limit: int,
        accepts: Callable[[S], bool],
        served: WorkFilter | None = None,
    ) -> list[S]:
        """The first due states that the caller accepts and that one answer carries, earliest first."""
        found: list[S] = []
        room = ANSWER_BYTES
        async with aclosing(self.due(ledger.name, status, through_ms, served, limit)) as cells:
            async for _, cell in cells:
                if accepts(state := ledger.state(cell)):
                    room -= cell.size
                    if found and room < 0:
                        break
                    found.append(state)
                if len(found) >= limit:
                    break
        return found

    async def find(self, ledger: Ledger[S], key: str) -> S | None:
        return ledger.find(await self.cells.snapshot((ledger.at(key),)), key)

    async def page(
        self, ledger: Ledger[S], request: PageRequest[Any], statuses: Iterable[str], parent: str = "", kind: str = ""
    ) -> Page[S]:
        """A page of the states that match, in the order of the ledger's places."""
        after = decode_cursor(request.cursor, str, question=request.question)
        query = CellQuery(ledger.name, tuple(statuses), parent, kind)
        found = [*(await self.cells.listed(query, request.limit + 1, str(after[0]) if after else "")).values()]
        carried = fit_answer(found[: request.limit], lambda cell: cell.size)
        is_last = len(carried) == len(found)
        cursor = "" if is_last else encode_cursor((carried[-1].place or "",), request.question)
        return Page([ledger.state(cell) for cell in carried], cursor)

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
            await self.journal.submit(AppendRequest(events=events, cells=transition.cells, opens=transition.opens))
        if transition.closes is not None:
            await self.journal.close_run(transition.closes)


def _caused(caller: Caller, event: LedgerEvent, snapshot: CellSnapshot) -> Caller:
    """Adds a cause: the current one, or the entry that the run was begun for."""
    if caller.cause is not None:
        return caller
    cause = current_cause()
    return replace(caller, cause=cause_of(snapshot, event.run_id) if cause is None else cause)
