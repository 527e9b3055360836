"""The ledger of runs: begin, lease, end, and find runs without a worker."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from tape.core.caller import PLAIN, Caller
from tape.core.causation import current_cause
from tape.core.claim import RUN_LEASE, check_lease, check_owner
from tape.core.errors import NotFound
from tape.core.event import check_run_id
from tape.core.ids import RunId
from tape.core.run_state import Compaction, Invocation, RunClaim, RunSpec, RunState, RunStatus
from tape.core.text import check_body
from tape.runs import compaction, lifecycle
from tape.runs.ledger import parts
from tape.runs.ledger_store import LedgerStore
from tape.runs.lifecycle import DEBTS, ENDED, LEASED, NEWEST, READY, RUNS

LIMIT: Final = 100


class Runs:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def begin(self, spec: RunSpec, caller: Caller = PLAIN) -> RunClaim:
        """Begins a run, unique for its invocation; beginning it again resumes it, if it has not ended."""
        run_id, session = spec.of.run_id, parts(spec.of.app, spec.of.user, spec.of.session)
        ids = RUNS.at(run_id), NEWEST.at(session)
        cause = current_cause() if caller.cause is None else caller.cause
        caused = spec if spec.cause is not None else replace(spec, cause=cause)
        begun = await self._store.change(ids, partial(lifecycle.begin, spec=caused), caller)
        return await self._numbered(begun)

    async def take(self, run_id: str, owner: str, lease: timedelta = RUN_LEASE, caller: Caller = PLAIN) -> RunClaim:
        """Leases a run to an owner, unless it has ended or another owner holds it."""
        run, owner, lease = check_run_id(run_id), check_owner(owner), check_lease(lease)
        decide = partial(lifecycle.take, run_id=run, owner=owner, lease=lease)
        return await self._numbered(await self._store.change((RUNS.at(run),), decide, caller))

    async def heartbeat(self, run_id: str, attempt: int) -> RunState:
        """Renews a worker's lease and returns the run's state."""
        run = check_run_id(run_id)
        decide = partial(lifecycle.heartbeat, run_id=run, attempt=attempt)
        return await self._store.change((RUNS.at(run),), decide)

    async def end(
        self,
        run_id: str,
        status: RunStatus,
        detail_json: str = "",
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> RunState:
        """Ends a run; one that has ended for good stays as it is."""
        run, detail_json = check_run_id(run_id), check_body("detail_json", detail_json)
        decide = partial(lifecycle.end, run_id=run, status=status, detail_json=detail_json, fence=fence)
        return await self._store.change((RUNS.at(run), DEBTS.at(run)), decide, caller)

    async def find(self, run_id: str) -> RunState:
        run = check_run_id(run_id)
        return lifecycle.find(await self._store.cells.snapshot((RUNS.at(run),)), run)

    async def newest(self, app: str, user: str, session: str) -> RunId:
        """The run that was begun last in a session."""
        of = Invocation(app=app, user=user, session=session)
        key = parts(of.app, of.user, of.session)
        found = await self._store.find(NEWEST, key)
        if found is None:
            raise NotFound(f"session {session!r} of {user!r} in {app!r} has no run")
        return found.run_id

    async def to_recover(self, app: str | None = None, limit: int = LIMIT, now_ms: int | None = None) -> list[RunState]:
        """Runs that need a worker: never taken, released, or with an expired lease."""
        now = await self._store.now_ms(now_ms)
        found = [
            await self._store.due_states(RUNS, status, now, limit, lambda run: app in (None, run.of.app))
            for status in (READY, LEASED)
        ]
        return [run for runs in found for run in runs][:limit]

    async def compactable(self, before_ms: int, limit: int = LIMIT) -> list[RunState]:
        """Runs that ended before a time and were never compacted, the oldest first."""
        page = await self._store.cells.due(RUNS.name, ENDED, before_ms, limit)
        return list(RUNS.states(page))

    async def compact(self, run_id: str, caller: Caller = PLAIN) -> Compaction:
        """Deletes the bodies of a settled run's decisions and effects and keeps the records."""
        return await compaction.compact(self._store, check_run_id(run_id), caller)

    async def _numbered(self, begun: RunClaim) -> RunClaim:
        head = await self._store.head(begun.run.run_id)
        return replace(begun, next_seq=head.last_seq + 1)
