"""What a server does beside answering: ends runs that fell silent, keeps and lets go of those that have ended."""

import time
from contextlib import nullcontext, suppress
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn, TypeAlias

import anyio
from anyio.abc import TaskGroup

from tape.bus.stream import Stream
from tape.core.errors import Conflict
from tape.core.ids import SYSTEM_PREFIX, RunId, Seq
from tape.core.lease import GONE
from tape.core.run import RunRecord
from tape.server.node import ColdRuns, Node
from tape.telemetry import log

EVERY: Final = timedelta(milliseconds=500)
SOONEST: Final = timedelta(seconds=1)
LATEST: Final = timedelta(minutes=1)
RECENT: Final = 256
FILES: Final = 8
LEAVE_S: Final = 3.0

Incarnation: TypeAlias = tuple[RunId, Seq]


class RunMaintenance:
    """Looks again and again at which runs there are; what fails is tried in the next round."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._being_kept: set[Incarnation] = set()
        self._kept: set[Incarnation] = set() if node.cold is None else node.cold.incarnations
        self._not_kept: set[Incarnation] = set()
        self._changed = anyio.Event()
        self._files = anyio.CapacityLimiter(FILES)
        self._next_sweep = 0.0
        self._is_failing = False
        self._epoch = node.journal.epoch

    async def run(self) -> NoReturn:
        while True:
            async with anyio.create_task_group() as tasks:
                await self._look_after(tasks)

    async def _look_after(self, tasks: TaskGroup) -> NoReturn:
        while True:
            try:
                await self._round(tasks)
                self._is_failing = False
            except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on without maintenance for a while
                self._tell_once(error)
            await anyio.sleep(EVERY.total_seconds())

    def _tell_once(self, error: Exception) -> None:
        if not self._is_failing:
            log.warning("maintenance.failed", error=type(error).__name__)
        self._is_failing = True

    async def finish(self) -> None:
        """Ends the runs that end with this process, and waits for their files."""
        if not self._node.is_ephemeral or self._node.cold is None:
            return
        with anyio.move_on_after(LEAVE_S):
            for record in await self._users(is_open=True):
                await self._node.journal.close_run(record.run_id)
            while not self._is_all_kept(await self._users(is_open=False)):
                await self._changed.wait()
                self._changed = anyio.Event()

    async def _round(self, tasks: TaskGroup) -> None:
        await self._node.journal.close_silent(GONE)
        if not self._node.is_bounded:
            return
        await self._follow_epoch()
        is_sweep = anyio.current_time() >= self._next_sweep
        live = await self._users(is_open=True)
        ended = await self._users(is_open=False, limit=None if is_sweep else RECENT)
        if self._node.cold is not None:
            for record in (*live, *ended):
                self._keep(record, self._node.cold, tasks)
        if is_sweep:
            await self._sweep(ended)

    async def _follow_epoch(self) -> None:
        """What was kept of another journal's runs says nothing about those of this one."""
        await self._node.journal.head()
        if self._epoch != self._node.journal.epoch:
            self._epoch = self._node.journal.epoch
            self._kept.clear()
            self._not_kept.clear()

    async def _sweep(self, ended: list[RunRecord]) -> None:
        """Lets go of what is due; all that have ended are looked at, so it is done now and then only."""
        self._not_kept.clear()
        for record in ended:
            await self._let_go(record, time.time_ns() // 1_000_000)
        pause = min(max(self._node.reap_after / 2, SOONEST), LATEST)
        self._next_sweep = anyio.current_time() + pause.total_seconds()

    async def _users(self, *, is_open: bool, limit: int | None = None) -> list[RunRecord]:
        records = await self._node.runs.listed(is_open=is_open, limit=limit)
        return [record for record in records if not (record.is_reaped or record.run_id.startswith(SYSTEM_PREFIX))]

    def _keep(self, record: RunRecord, cold: ColdRuns, tasks: TaskGroup) -> None:
        incarnation = _incarnation(record)
        if not any(incarnation in incarnations for incarnations in (self._being_kept, self._kept, self._not_kept)):
            self._being_kept.add(incarnation)
            tasks.start_soon(self._follow, record, cold)

    async def _follow(self, record: RunRecord, cold: ColdRuns) -> None:
        incarnation = _incarnation(record)
        try:
            async with nullcontext() if record.head.is_open else self._files:
                await cold.keep(record.run_id, partial(self._read, record.run_id), record.meta)
            self._kept.add(incarnation)
        except Exception as error:  # noqa: BLE001 - one run that cannot be kept must not end the server
            self._not_kept.add(incarnation)
            log.warning("run.not_kept", run_id=record.run_id, error=type(error).__name__)
        finally:
            self._being_kept.discard(incarnation)
            self._changed.set()

    def _read(self, run_id: RunId, from_seq: Seq) -> Stream:
        return self._node.journal.stream(run_id=run_id, from_seq=from_seq)

    async def _let_go(self, record: RunRecord, now_ms: int) -> None:
        """Reaps a run that ended long enough ago, once its file is written."""
        is_safe = self._node.cold is None or _incarnation(record) in self._kept
        if is_safe and is_due(record, self._node.reap_after, now_ms):
            with suppress(Conflict):  # a fork still incarnations on it
                await self._node.journal.reap(record.run_id)
                self._kept.discard(_incarnation(record))

    def _is_all_kept(self, records: list[RunRecord]) -> bool:
        return all(_incarnation(record) in self._kept for record in records)


def is_due(record: RunRecord, after: timedelta, now_ms: int) -> bool:
    """Whether a run has been closed for so long."""
    return record.closed_at_ms is not None and now_ms - record.closed_at_ms >= after / timedelta(milliseconds=1)


def _incarnation(record: RunRecord) -> Incarnation:
    return record.run_id, record.head.opened_seq
