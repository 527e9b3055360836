"""Runs in the journal: opens, closes, cancels, reaps, lists, shows, forks and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from os import urandom
from typing import TYPE_CHECKING

from tape.bus.journal import Journal
from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.diff import Diff
from tape.core.errors import Conflict, NotFound, RunNotFound
from tape.core.ids import Epoch, RunId, Seq
from tape.core.ledger_diff import LedgerRow, compare_actions
from tape.core.page import Page, fit_answer, fit_beside
from tape.core.ports import RunDirectory
from tape.core.run import ClosedRun, ForkedRun, OpenedRun, RunMeta, RunRecord
from tape.core.run_detail import RunDetail
from tape.core.run_diff import RunDiff, bounded_diff
from tape.core.run_query import RunPosition, RunQuery
from tape.core.run_state import RunState, RunStatus
from tape.operations.journal_runs import (
    CancelRun,
    CloseRun,
    DiffRuns,
    ForkRun,
    ListRuns,
    OpenRun,
    ReapRun,
    ShowRun,
)
from tape.operations.run_actions import read_actions
from tape.operations.runs import EndRun, GetRun
from tape.runs.cold_runs import ColdRuns
from tape.runs.forks import Forks, ForkSpec

if TYPE_CHECKING:
    from tape.runs.ledgers import LocalLedgers


class JournalRuns:
    """The runs of a store; `cold` has those that the store has deleted, and a store may have no ledgers."""

    def __init__(
        self,
        journal: Journal,
        runs: RunDirectory,
        ledgers: LocalLedgers | None,
        forks: Forks | None = None,
        cold: ColdRuns | None = None,
    ) -> None:
        self._journal = journal
        self._runs = runs
        self._ledgers = ledgers
        self._forks = forks or Forks(journal, ledgers=ledgers)
        self._cold = cold

    async def open(self, request: OpenRun, caller: Caller) -> OpenedRun:
        run_id = RunId(request.run_id or f"run-{urandom(8).hex()}")
        meta = RunMeta(**{each.name: getattr(request, each.name) for each in fields(RunMeta)})
        await self._journal.open_run(run_id, meta)
        return OpenedRun(run_id=run_id, epoch=self._journal.epoch)

    async def close(self, request: CloseRun, caller: Caller) -> ClosedRun:
        return ClosedRun(run_id=RunId(request.run_id), last_seq=await self._journal.close_run(request.run_id))

    async def cancel(self, request: CancelRun, caller: Caller) -> ClosedRun:
        """A run that has to undo effects goes on until it has, so its last seq still grows."""
        run_id = RunId(request.run_id)
        if self._ledgers is None or await self._state(run_id) is None:
            return ClosedRun(run_id=run_id, last_seq=await self._forks.cancel(run_id, request.reason))
        detail = codec.encode({"reason": request.reason})
        with suppress(Conflict):  # a run that has ended is not changed
            await self._ledgers.call(EndRun(run_id=run_id, status=RunStatus.CANCELLED, detail_json=detail), caller)
        return ClosedRun(run_id=run_id, last_seq=await self._ledgers.last_seq(run_id))

    async def reap(self, request: ReapRun, caller: Caller) -> ClosedRun:
        run_id = RunId(request.run_id)
        record = await self.find(run_id)
        await self._journal.reap(run_id)
        return ClosedRun(run_id=run_id, last_seq=record.head.last_seq)

    async def list(self, request: ListRuns, caller: Caller) -> Page[RunRecord]:
        """The runs in the store or in cold files, each once."""
        query, after = request.query, request.query.decode(request.cursor)
        found = await self._runs.listed(query, request.limit + 1, after)
        cold = () if self._cold is None else await self._only_cold(self._cold, query, after)
        if cold:
            found = query.in_order([*found, *cold])
        return query.page(found, len(fit_answer(found[: request.limit], codec.size)))

    async def show(self, request: ShowRun, caller: Caller) -> RunDetail:
        run_id = RunId(request.run_id)
        record, epoch = await self._find(run_id)
        ledger = await self._state(run_id)
        if ledger is None or self._ledgers is None:
            return RunDetail(record=record, epoch=epoch)
        found = RunDetail(record=record, epoch=epoch, ledger=ledger)
        unmet = await self._ledgers.obligations.unmet(run_id)
        return replace(found, obligations=tuple(fit_beside(unmet, codec.size, codec.size(found))))

    async def fork(self, request: ForkRun, caller: Caller) -> ForkedRun:
        spec = ForkSpec(
            at_seq=request.at_seq,
            mutation=codec.decode(request.mutation_json) if request.mutation_json else None,
            n_turns=request.n_turns,
            producer=request.producer,
            effects=request.effects,
            reason=request.reason,
        )
        parent = await self.find(RunId(request.run_id))
        child = await self._forks.fork(parent, spec)
        return ForkedRun(child_run_id=child, parent_run_id=parent.run_id, at_seq=Seq(request.at_seq))

    async def diff(self, request: DiffRuns, caller: Caller) -> RunDiff:
        return bounded_diff(*await self.compare(request.run_id, request.other), request.limit)

    async def compare(self, one: str, other: str) -> tuple[Diff, Sequence[LedgerRow]]:
        """All entries, decisions and effects of two runs after their last shared entry."""
        found = await self._journal.diff(one, other)
        if self._ledgers is None:
            return found, ()
        mine, theirs = [await read_actions(self._ledgers, run_id) for run_id in (found.one, found.other)]
        return found, compare_actions(mine, theirs)

    async def find(self, run_id: RunId) -> RunRecord:
        """The record of a run, from the store or from its cold file."""
        return (await self._find(run_id))[0]

    async def _find(self, run_id: RunId) -> tuple[RunRecord, Epoch]:
        """The record of a run and the epoch of its seqs."""
        record = await self._runs.find(run_id)
        if record is not None:
            return record, self._journal.epoch
        file = None if self._cold is None else await self._cold.find(run_id)
        if file is None:
            raise RunNotFound(run_id)
        return file.record, file.epoch_or(self._journal.epoch)

    async def _state(self, run_id: RunId) -> RunState | None:
        """The state of a run in its ledger; a run that was only opened has none."""
        try:
            return None if self._ledgers is None else await self._ledgers.call(GetRun(run_id=run_id), PLAIN)
        except NotFound:
            return None

    async def _only_cold(self, cold: ColdRuns, query: RunQuery, after: RunPosition | None) -> Sequence[RunRecord]:
        """The matching runs after a position that only cold files have."""
        records = [record for record in await cold.listed() if query.matches(record)]
        if after is not None:
            records = [record for record in records if query.follows(query.position(record), after)]
        stored = await self._runs.heads([record.run_id for record in records]) if records else {}
        return [record for record in records if record.run_id not in stored]
