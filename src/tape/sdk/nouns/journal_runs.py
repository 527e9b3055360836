"""Runs in the journal, with or without a ledger: open, close, cancel, reap, list, show, fork and compare them."""

from typing import TypedDict, Unpack

from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue, encode_optional
from tape.core.fork_policy import EffectPolicy
from tape.core.page import Page
from tape.core.producer import TURNS
from tape.core.run import ClosedRun, ForkedRun, OpenedRun, RunRecord
from tape.core.run_detail import RunDetail
from tape.core.run_diff import RunDiff
from tape.core.run_query import MAX_PAGE, RunOrder, StatusFilter
from tape.operations.journal_runs import (
    CANCELLED,
    DIFF_ROWS,
    CancelRun,
    CloseRun,
    DiffRuns,
    ForkRun,
    ListRuns,
    OpenRun,
    ReapRun,
    ShowRun,
)
from tape.operations.ledgers import Ledgers


class RunFilters(TypedDict, total=False):
    """Which runs to list, and in which order, as `RunQuery` has them."""

    status: StatusFilter
    app: str
    label: str
    prefix: str
    parent: str
    opened_after: int
    opened_before: int
    closed_after: int
    closed_before: int
    order: RunOrder


class JournalRuns:
    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def open(
        self,
        run_id: str = "",
        *,
        label: str | None = None,
        started_at: str | None = None,
        app: str | None = None,
        user: str | None = None,
        session: str | None = None,
    ) -> OpenedRun:
        """Opens a run, or a closed one again; without an id it gets a new one."""
        request = OpenRun(run_id=run_id, label=label, started_at=started_at, app=app, user=user, session=session)
        return await self._ledgers.call(request)

    async def close(self, run_id: str) -> ClosedRun:
        """Closes a run after all earlier appends; its streams drain and end."""
        return await self._ledgers.call(CloseRun(run_id=run_id))

    async def cancel(self, run_id: str, reason: str = CANCELLED, caller: Caller = PLAIN) -> ClosedRun:
        """Stops the producer or worker of a run and closes the run, whether it was begun or only opened."""
        return await self._ledgers.call(CancelRun(run_id=run_id, reason=reason), caller)

    async def reap(self, run_id: str) -> ClosedRun:
        """Reaps a closed run: a bounded store deletes its entries, a durable one keeps them."""
        return await self._ledgers.call(ReapRun(run_id=run_id))

    async def list(self, *, limit: int = MAX_PAGE, cursor: str = "", **filters: Unpack[RunFilters]) -> Page[RunRecord]:
        """The runs that match, a page at a time; `next_cursor` is the cursor of the next page."""
        return await self._ledgers.call(ListRuns(limit=limit, cursor=cursor, **filters))

    async def show(self, run_id: str) -> RunDetail:
        """A run with its state in its ledger, and its obligations that are not met."""
        return await self._ledgers.call(ShowRun(run_id=run_id))

    async def fork(
        self,
        run_id: str,
        at_seq: int,
        *,
        mutation: JsonValue = None,
        n_turns: int = TURNS,
        producer: str | None = None,
        effects: EffectPolicy | None = None,
        reason: str | None = None,
    ) -> ForkedRun:
        """Creates a run with the entries 1 to `at_seq` of another; only a server knows producers to continue it."""
        request = ForkRun(
            run_id=run_id,
            at_seq=at_seq,
            mutation_json=encode_optional(mutation),
            n_turns=n_turns,
            producer=producer,
            effects=effects,
            reason=reason,
        )
        return await self._ledgers.call(request)

    async def diff(self, run_id: str, other: str, limit: int = DIFF_ROWS) -> RunDiff:
        """The entries, decisions and effects in which two runs differ, as many as an answer carries."""
        return await self._ledgers.call(DiffRuns(run_id=run_id, other=other, limit=limit))
