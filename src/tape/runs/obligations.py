"""The ledger of obligations, as workers use it."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from tape.core.app import serves
from tape.core.caller import Caller
from tape.core.errors import NotFound
from tape.core.event import check_run_id
from tape.core.ids import RunId
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.page import Page
from tape.core.ports import CellQuery, CellSnapshot
from tape.core.text import check_name
from tape.operations.obligations import (
    ClaimObligation,
    GetObligation,
    ListObligations,
    ListUnresolvedObligations,
    RecordObligationAttempt,
    RegisterCompensation,
    ResolveObligation,
    RetryObligation,
)
from tape.runs import compensation
from tape.runs.compensation import OBLIGATIONS, newest_first
from tape.runs.ledger import LAST_NUMBER, work_filter
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import DEBTS, RUNS

OWED: Final = frozenset({ObligationStatus.PENDING, ObligationStatus.COMMITTED})


class Obligations:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def register(self, request: RegisterCompensation, caller: Caller) -> Obligation:
        run, effect_key = check_run_id(request.run_id), check_name("effect_key", request.effect_key)
        ids = RUNS.at(run), DEBTS.at(run), compensation.id_of(run, effect_key, request.kind)
        decide = partial(compensation.register, run_id=run, effect_key=effect_key, compensation=request)
        return await self._store.change(ids, decide, caller)

    async def get(self, request: GetObligation, caller: Caller) -> Obligation | None:
        return await self._numbered(request.run_id, request.number)

    async def listed(self, request: ListObligations, caller: Caller) -> Page[Obligation]:
        statuses = sorted(OWED) if request.only_unresolved else [*ObligationStatus]
        wanted = statuses if request.status is None else (request.status,)
        return await self._store.page(OBLIGATIONS, request, wanted, request.run_id)

    async def unmet(self, run_id: str) -> Sequence[Obligation]:
        """The obligations of a run that are not compensated, newest first."""
        return [each for each in await self._of(run_id) if each.status is not ObligationStatus.COMPENSATED]

    async def unresolved(self, request: ListUnresolvedObligations, caller: Caller) -> Sequence[Obligation]:
        wanted = _wanted(request)
        found = await self._due(request, wanted & OWED) if wanted & OWED else []
        if ObligationStatus.STUCK in wanted and len(found) < request.limit:
            now, rest = await self._store.now_ms(), request.limit - len(found)
            found += OBLIGATIONS.states(await self._store.cells.due(OBLIGATIONS.name, "stuck", now, rest))
        return found

    async def _due(self, request: ListUnresolvedObligations, among: Collection[ObligationStatus]) -> list[Obligation]:
        """Those that a worker cannot serve take no place in the list."""
        app, compensators = request.app, request.compensators
        now = await self._store.now_ms(request.now_ms)
        found: list[Obligation] = []
        wanted = work_filter(app, compensators) if app and compensators is not None else None
        async with aclosing(self._store.due(DEBTS.name, "due", now, wanted, request.limit)) as debts:
            async for cell_id, _ in debts:
                turn = compensation.first(await self._snapshot(RunId(cell_id.key)), RunId(cell_id.key))
                is_due = turn is not None and turn.due_at_ms <= now and turn.status in among
                if turn is not None and is_due and _is_served(turn, app, compensators):
                    found.append(turn)
                if len(found) >= request.limit:
                    break
        return found

    async def claim(self, request: ClaimObligation, caller: Caller) -> ObligationClaim:
        run = RunId(request.run_id)
        decide = partial(
            compensation.claim, run_id=run, number=request.number, owner=request.owner, lease=request.lease,
            app=request.app,
        )  # fmt: skip
        return await self._store.change_from(self._read(run), decide, caller)

    async def attempt(self, request: RecordObligationAttempt, caller: Caller) -> Obligation:
        run = RunId(request.run_id)
        decide = partial(
            compensation.attempt, run_id=run, number=request.number, error=request.error,
            fence=request.attempt or await self._newest(run, request.number),
            next_attempt_at_ms=request.next_attempt_at_ms,
        )  # fmt: skip
        return await self._store.change_from(self._read(run), decide, caller)

    async def resolve(self, request: ResolveObligation, caller: Caller) -> Obligation:
        run = RunId(request.run_id)
        decide = partial(
            compensation.resolve, run_id=run, number=request.number, status=request.status,
            result_json=request.result_json, fence=request.attempt,
        )  # fmt: skip
        return await self._store.change_from(self._read(run), decide, caller)

    async def retry(self, request: RetryObligation, caller: Caller) -> Obligation:
        run = RunId(request.run_id)
        decide = partial(compensation.retry, run_id=run, number=request.number)
        return await self._store.change_from(self._read(run), decide, caller)

    async def _of(self, run_id: str) -> Sequence[Obligation]:
        return newest_first([*OBLIGATIONS.states(await self._store.under(OBLIGATIONS.name, check_run_id(run_id)))])

    async def _newest(self, run_id: RunId, number: int) -> int:
        found = await self._numbered(run_id, number)
        if found is None:
            raise NotFound(f"run {run_id!r} has no obligation {number}")
        return found.claim.attempt

    async def _numbered(self, run_id: str, number: int) -> Obligation | None:
        """The obligation of a number, which is the first one at or after its place."""
        if not 0 < number < LAST_NUMBER:
            return None
        query = CellQuery(OBLIGATIONS.name, tuple(ObligationStatus), run_id)
        cells = await self._store.cells.listed(query, 1, compensation.place_of(run_id, number + 1))
        return next((owed for owed in OBLIGATIONS.states(cells) if owed.number == number), None)

    def _read(self, run_id: RunId) -> Callable[[], Awaitable[CellSnapshot]]:
        return partial(self._snapshot, run_id)

    async def _snapshot(self, run_id: RunId) -> CellSnapshot:
        """Reads the run and its debt first: any change of its obligations also changes the debt."""
        snapshot = await self._store.cells.snapshot((RUNS.at(run_id), DEBTS.at(run_id)))
        return snapshot._replace(cells={**snapshot.cells, **await self._store.under(OBLIGATIONS.name, run_id)})


def _is_served(owed: Obligation, app: str, compensators: Collection[str] | None) -> bool:
    return serves(app, owed.app) and (compensators is None or owed.compensator in compensators)


def _wanted(request: ListUnresolvedObligations) -> frozenset[ObligationStatus]:
    flags = {
        ObligationStatus.PENDING: request.include_pending,
        ObligationStatus.COMMITTED: request.include_committed_expired,
        ObligationStatus.STUCK: request.include_stuck,
    }
    return frozenset(status for status, is_wanted in flags.items() if is_wanted) or OWED
