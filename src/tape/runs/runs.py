"""The ledger of runs: begin, lease, end, and find runs without a worker."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tape.core.caller import Caller
from tape.core.causation import current_cause
from tape.core.ids import RunId
from tape.core.run_state import Compaction, RunClaim, RunState
from tape.operations.runs import (
    BeginRun,
    CompactRun,
    EndRun,
    FindNewestRun,
    GetRun,
    ListCompactableRuns,
    ListRunsToRecover,
    RenewRun,
    TakeRun,
)
from tape.runs import compaction, lifecycle
from tape.runs.ledger import parts
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import DEBTS, ENDED, LEASED, NEWEST, READY, RUNS


class Runs:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def begin(self, request: BeginRun, caller: Caller) -> RunClaim:
        of = request.of
        ids = RUNS.at(of.run_id), NEWEST.at(parts(of.app, of.user, of.session))
        cause = current_cause() if caller.cause is None else caller.cause
        caused = request if request.cause is not None else replace(request, cause=cause)
        begun = await self._store.change(ids, partial(lifecycle.begin, spec=caused), caller)
        return await self._numbered(begun)

    async def take(self, request: TakeRun, caller: Caller) -> RunClaim:
        run = RunId(request.run_id)
        decide = partial(lifecycle.take, run_id=run, owner=request.owner, lease=request.lease)
        return await self._numbered(await self._store.change((RUNS.at(run),), decide, caller))

    async def renew(self, request: RenewRun, caller: Caller) -> RunState:
        run = RunId(request.run_id)
        decide = partial(lifecycle.heartbeat, run_id=run, attempt=request.attempt)
        return await self._store.change((RUNS.at(run),), decide)

    async def end(self, request: EndRun, caller: Caller) -> RunState:
        run = RunId(request.run_id)
        decide = partial(
            lifecycle.end, run_id=run, status=request.status, detail_json=request.detail_json, fence=request.fence
        )
        return await self._store.change((RUNS.at(run), DEBTS.at(run)), decide, caller)

    async def get(self, request: GetRun, caller: Caller) -> RunState:
        run = RunId(request.run_id)
        return lifecycle.find(await self._store.cells.snapshot((RUNS.at(run),)), run)

    async def newest(self, request: FindNewestRun, caller: Caller) -> RunId:
        return await self._store.newest_run(request.app, request.user, request.session)

    async def to_recover(self, request: ListRunsToRecover, caller: Caller) -> Sequence[RunState]:
        now, limit = await self._store.now_ms(request.now_ms), request.limit
        found = [
            await self._store.due_states(RUNS, status, now, limit, lambda run: request.app in (None, run.of.app))
            for status in (READY, LEASED)
        ]
        return [run for runs in found for run in runs][:limit]

    async def compactable(self, request: ListCompactableRuns, caller: Caller) -> Sequence[RunState]:
        page = await self._store.cells.due(RUNS.name, ENDED, request.before_ms, request.limit)
        return list(RUNS.states(page))

    async def compact(self, request: CompactRun, caller: Caller) -> Compaction:
        return await compaction.compact(self._store, RunId(request.run_id), caller)

    async def _numbered(self, begun: RunClaim) -> RunClaim:
        head = await self._store.head(begun.run.run_id)
        return replace(begun, next_seq=head.last_seq + 1)
