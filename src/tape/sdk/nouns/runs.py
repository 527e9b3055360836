"""Runs, as a program begins, works on and ends them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import RUN_LEASE
from tape.core.codec import JsonValue, encode_optional
from tape.core.ids import RunId
from tape.core.run_state import Compaction, Identity, Invocation, RunClaim, RunState, RunStatus
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
from tape.sdk.nouns.journal_runs import JournalRuns


class Runs(JournalRuns):
    """Work that is begun once, done by one at a time, and ended for good; and runs that are only opened."""

    async def begin(
        self,
        app: str,
        user: str = "",
        session: str = "",
        invocation: str = "",
        *,
        owner: str = "",
        lease: timedelta = RUN_LEASE,
        identity: Identity | None = None,
        scopes: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        caller: Caller = PLAIN,
    ) -> RunClaim:
        """Begins a run that is unique for its four names; beginning it again resumes it.

        Without an owner it waits for whoever takes it.
        """
        request = BeginRun(
            of=Invocation(app=app, user=user, session=session, invocation=invocation),
            owner=owner,
            lease=lease,
            identity=identity or Identity(),
            scopes=tuple(scopes),
            labels=labels or {},
        )
        return await self._ledgers.call(request, caller)

    async def take(self, run_id: str, owner: str, lease: timedelta = RUN_LEASE, caller: Caller = PLAIN) -> RunClaim:
        """Leases a run to an owner, unless it has ended or somebody else holds it."""
        return await self._ledgers.call(TakeRun(run_id=run_id, owner=owner, lease=lease), caller)

    async def heartbeat(self, run_id: str, attempt: int) -> RunState:
        """Renews a worker's lease; returns the state of its run."""
        return await self._ledgers.call(RenewRun(run_id=run_id, attempt=attempt))

    async def end(
        self,
        run_id: str,
        status: RunStatus = RunStatus.TERMINAL,
        detail: JsonValue = None,
        *,
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> RunState:
        """Ends a run; one that has ended stays as it is."""
        request = EndRun(run_id=run_id, status=RunStatus(status), detail_json=encode_optional(detail), fence=fence)
        return await self._ledgers.call(request, caller)

    async def get(self, run_id: str) -> RunState:
        return await self._ledgers.call(GetRun(run_id=run_id))

    async def newest(self, app: str, user: str, session: str) -> RunId:
        """The run that was begun last in a session."""
        return await self._ledgers.call(FindNewestRun(app=app, user=user, session=session))

    async def to_recover(
        self, app: str | None = None, limit: int = 100, now_ms: int | None = None
    ) -> Sequence[RunState]:
        """Runs without a worker that should have one."""
        return await self._ledgers.call(ListRunsToRecover(app=app, limit=limit, now_ms=now_ms))

    async def compactable(self, before_ms: int, limit: int = 100) -> Sequence[RunState]:
        """Runs that ended before a time and were never compacted, the oldest first."""
        return await self._ledgers.call(ListCompactableRuns(before_ms=before_ms, limit=limit))

    async def compact(self, run_id: str, caller: Caller = PLAIN) -> Compaction:
        """Deletes the bodies of a settled run's decisions and effects."""
        return await self._ledgers.call(CompactRun(run_id=run_id), caller)
