"""The ledger of obligations, as workers use it."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Final

from tape.core.app import ANY, check_app, serves
from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE, check_lease, check_owner
from tape.core.effect import Compensation
from tape.core.event import check_run_id
from tape.core.ids import RunId
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.core.ports import CellSnapshot
from tape.core.text import check_body, check_count, check_name
from tape.runs import compensation
from tape.runs.compensation import OBLIGATIONS, newest_first
from tape.runs.ledger import work_filter
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import DEBTS, RUNS

LIMIT: Final = 500
OWED: Final = frozenset({ObligationStatus.PENDING, ObligationStatus.COMMITTED})


class Obligations:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def register(self, run_id: str, effect_key: str, how: Compensation, caller: Caller = PLAIN) -> Obligation:
        """Registers one obligation per effect and kind; it waits until its run has failed."""
        run, effect_key = check_run_id(run_id), check_name("effect_key", effect_key)
        ids = RUNS.at(run), *compensation.ids_of(run, effect_key, how.kind)
        decide = partial(compensation.register, run_id=run, effect_key=effect_key, compensation=how)
        return await self._store.change(ids, decide, caller)

    async def listed(self, run_id: str, *, only_unresolved: bool = False) -> list[Obligation]:
        """The obligations of a run, newest first."""
        found = OBLIGATIONS.states(await self._store.under(OBLIGATIONS.name, check_run_id(run_id)))
        return newest_first([each for each in found if each.is_owed or not only_unresolved])

    async def unmet(self, run_id: str) -> list[Obligation]:
        """The obligations of a run that are not compensated, newest first."""
        return [each for each in await self.listed(run_id) if each.status is not ObligationStatus.COMPENSATED]

    async def due(
        self,
        limit: int = LIMIT,
        now_ms: int | None = None,
        among: Collection[ObligationStatus] = OWED,
        *,
        app: str = ANY,
        compensators: Collection[str] | None = None,
    ) -> list[Obligation]:
        """The next due obligation of each run, the longest due first.

        With an app and compensators, only those that such a worker can serve; others take no place in the list.
        """
        check_app(app)
        now = await self._store.now_ms(now_ms)
        found: list[Obligation] = []
        wanted = work_filter(app, compensators) if app and compensators is not None else None
        async with aclosing(self._store.due(DEBTS.name, "due", now, wanted, limit)) as debts:
            async for cell_id, _ in debts:
                turn = compensation.first(await self._snapshot(RunId(cell_id.key)), RunId(cell_id.key))
                is_due = turn is not None and turn.due_at_ms <= now and turn.status in among
                if turn is not None and is_due and _is_served(turn, app, compensators):
                    found.append(turn)
                if len(found) >= limit:
                    break
        return found

    async def stuck(self, limit: int = LIMIT) -> list[Obligation]:
        """Stuck obligations, which an operator must handle, the longest stuck first."""
        now = await self._store.now_ms()
        return list(OBLIGATIONS.states(await self._store.cells.due(OBLIGATIONS.name, "stuck", now, limit)))

    async def claim(
        self,
        run_id: str,
        number: int,
        owner: str,
        lease: timedelta = WORK_LEASE,
        caller: Caller = PLAIN,
        app: str = ANY,
    ) -> ObligationClaim:
        """Leases an obligation to a worker of its app, if it is the run's next one and due."""
        run, owner, lease = check_run_id(run_id), check_owner(owner), check_lease(lease)
        decide = partial(compensation.claim, run_id=run, number=number, owner=owner, lease=lease, app=check_app(app))
        return await self._store.change_from(self._read(run), decide, caller)

    async def attempt(
        self, run_id: str, number: int, attempt: int, error: str, next_attempt_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Obligation:
        """Records a failed attempt; without a next time the obligation is stuck."""
        run, error = check_run_id(run_id), check_body("error", error)
        decide = partial(
            compensation.attempt, run_id=run, number=number, fence=attempt, error=error,
            next_attempt_at_ms=check_count("next_attempt_at_ms", next_attempt_at_ms),
        )  # fmt: skip
        return await self._store.change_from(self._read(run), decide, caller)

    async def resolve(
        self,
        run_id: str,
        number: int,
        status: ObligationStatus = ObligationStatus.COMPENSATED,
        result_json: str = "",
        attempt: int | None = None,
        caller: Caller = PLAIN,
    ) -> Obligation:
        """Ends an obligation; its holder passes the attempt, an operator need not."""
        run, result_json = check_run_id(run_id), check_body("result_json", result_json)
        decide = partial(
            compensation.resolve, run_id=run, number=number, status=status, result_json=result_json, fence=attempt
        )
        return await self._store.change_from(self._read(run), decide, caller)

    def _read(self, run_id: RunId) -> Callable[[], Awaitable[CellSnapshot]]:
        return partial(self._snapshot, run_id)

    async def _snapshot(self, run_id: RunId) -> CellSnapshot:
        """Reads the run and its debt first: any change of its obligations also changes the debt."""
        snapshot = await self._store.cells.snapshot((RUNS.at(run_id), DEBTS.at(run_id)))
        return snapshot._replace(cells={**snapshot.cells, **await self._store.under(OBLIGATIONS.name, run_id)})


def _is_served(owed: Obligation, app: str, compensators: Collection[str] | None) -> bool:
    return serves(app, owed.app) and (compensators is None or owed.compensator in compensators)
