"""Background maintenance of runs: closes those without a producer, copies ended ones to files, and reaps them."""

import time
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn, TypeAlias

import anyio
from anyio.abc import TaskGroup

from tape.bus.every_run import every_run
from tape.bus.stream import Stream
from tape.core.errors import Conflict
from tape.core.ids import RunId, Seq
from tape.core.lease import GONE
from tape.core.run import RunRecord
from tape.core.run_query import CLOSED_RUNS, OPEN_RUNS, RunQuery
from tape.runs.cold_runs import ColdRuns
from tape.server.node import Node
from tape.telemetry import log

EVERY: Final = timedelta(milliseconds=500)
SOONEST: Final = timedelta(seconds=1)
LATEST: Final = timedelta(minutes=1)
RECENT: Final = 256
MAX_OPEN_FILES: Final = 8
FINISH_S: Final = 3.0

Incarnation: TypeAlias = tuple[RunId, Seq]


class RunMaintenance:
    """Checks the runs every half second; a failure is retried in the next round."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._copying: set[Incarnation] = set()
        self._copied: set[Incarnation] = set() if node.cold is None else node.cold.incarnations
        self._failed: set[Incarnation] = set()
        self._changed = anyio.Event()
        self._files = anyio.CapacityLimiter(MAX_OPEN_FILES)
        self._next_sweep = 0.0
        self._is_failing = False
        self._epoch = node.journal.epoch

    async def run(self) -> NoReturn:
        while True:
            async with anyio.create_task_group() as tasks:
                await self._run_rounds(tasks)

    async def _run_rounds(self, tasks: TaskGroup) -> NoReturn:
        while True:
            try:
                await self._round(tasks)
                self._is_failing = False
            except Exception as error:  # noqa: BLE001 - whatever it is, the server continues without maintenance for a while
                self._log_once(error)
            await anyio.sleep(EVERY.total_seconds())

    def _log_once(self, error: Exception) -> None:
        if not self._is_failing:
            log.warning("maintenance.failed", error=type(error).__name__)
        self._is_failing = True

    async def finish(self) -> None:
        """Closes the runs of an ephemeral store, and waits until their files are complete."""
        if not self._node.is_ephemeral or self._node.cold is None:
            return
        with anyio.move_on_after(FINISH_S):
            for record in await self._user_runs(OPEN_RUNS):
                await self._node.journal.close_run(record.run_id)
            while not self._are_all_copied(await self._user_runs(CLOSED_RUNS)):
                await self._changed.wait()
                self._changed = anyio.Event()

    async def _round(self, tasks: TaskGroup) -> None:
        await self._node.journal.close_silent(GONE)
        if not self._node.is_bounded:
            return
        await self._follow_epoch()
        is_sweep = anyio.current_time() >= self._next_sweep
        live = await self._user_runs(OPEN_RUNS)
        ended = await self._user_runs(CLOSED_RUNS, limit=None if is_sweep else RECENT)
        if self._node.cold is not None:
            for record in (*live, *ended):
                self._start_copy(record, self._node.cold, tasks)
        if is_sweep:
            await self._sweep(ended)

    async def _follow_epoch(self) -> None:
        """After an epoch change, files of the earlier epoch do not count as copies."""
        await self._node.journal.head()
        if self._epoch != self._node.journal.epoch:
            self._epoch = self._node.journal.epoch
            self._copied.clear()
            self._failed.clear()

    async def _sweep(self, ended: list[RunRecord]) -> None:
        """Reaps the runs that are due; it reads all ended runs, so it runs rarely."""
        self._failed.clear()
        for record in ended:
            await self._reap_if_due(record, time.time_ns() // 1_000_000)
        pause = min(max(self._node.reap_after / 2, SOONEST), LATEST)
        self._next_sweep = anyio.current_time() + pause.total_seconds()

    async def _user_runs(self, query: RunQuery, limit: int | None = None) -> list[RunRecord]:
        runs = self._node.runs
        records = await every_run(runs, query) if limit is None else await runs.listed(query, limit)
        return [record for record in records if not record.is_reaped]

    def _start_copy(self, record: RunRecord, cold: ColdRuns, tasks: TaskGroup) -> None:
        incarnation = _incarnation(record)
        if not any(incarnation in known for known in (self._copying, self._copied, self._failed)):
            self._copying.add(incarnation)
            tasks.start_soon(self._copy, record, cold)

    async def _copy(self, record: RunRecord, cold: ColdRuns) -> None:
        incarnation = _incarnation(record)
        try:
            async with nullcontext() if record.head.is_open else self._files:
                await cold.keep(record.run_id, partial(self._read, record.run_id), record.meta)
            self._copied.add(incarnation)
        except Exception as error:  # noqa: BLE001 - a run that cannot be copied must not end the server
            self._failed.add(incarnation)
            log.warning("run.copy_failed", run_id=record.run_id, error=type(error).__name__)
        finally:
            self._copying.discard(incarnation)
            self._changed.set()

    def _read(self, run_id: RunId, from_seq: Seq) -> Stream:
        return self._node.journal.stream(run_id=run_id, from_seq=from_seq)

    async def _reap_if_due(self, record: RunRecord, now_ms: int) -> None:
        """Reaps a run that ended long enough ago and whose file is complete."""
        is_safe = self._node.cold is None or _incarnation(record) in self._copied
        if is_safe and is_due(record, self._node.reap_after, now_ms):
            with suppress(Conflict):  # a fork still reads it
                await self._node.journal.reap(record.run_id)
                self._copied.discard(_incarnation(record))

    def _are_all_copied(self, records: list[RunRecord]) -> bool:
        return all(_incarnation(record) in self._copied for record in records)


def is_due(record: RunRecord, after: timedelta, now_ms: int) -> bool:
    """Whether a run has been closed for at least so long."""
    return record.closed_at_ms is not None and now_ms - record.closed_at_ms >= after / timedelta(milliseconds=1)


def _incarnation(record: RunRecord) -> Incarnation:
    return record.run_id, record.head.opened_seq
