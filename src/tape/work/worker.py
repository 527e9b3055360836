"""The one loop: claim, run, settle. It never holds more leases than it can run."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from tape.core.causation import caused_by
from tape.core.claim import WORK_LEASE, check_lease, check_owner
from tape.core.errors import TapeError, UsageError
from tape.core.ports import Queue
from tape.core.task import Claim, Claimed, ClaimRequest, Done, Outcome, Released, Settlement, Task
from tape.telemetry import is_watched, log, span
from tape.work.answers import Retry, outcome_of
from tape.work.attempt import Attempt, Deadlines, TaskHandler, clear_cancellation, dealt
from tape.work.deadline import exceeded
from tape.work.handler_tasks import HandlerTasks
from tape.work.outages import Outage

POLL_S: Final = 0.5
BRIEF_S: Final = 0.05  # what quick work needs to make room
TURN: Final = 64  # things that a hand does before it looks whether anybody else wants to
BEATS: Final = 3  # heartbeats in a lease, so that two may be lost
MOST_SLOTS: Final = 10_000


class Worker:
    """Works off a queue for as long as it runs; `stop` lets what was begun come to its end."""

    def __init__(
        self,
        queue: Queue,
        handlers: Mapping[str, TaskHandler],
        *,
        owner: str,
        slots: int = 16,
        lease: timedelta = WORK_LEASE,
    ) -> None:
        if not 1 <= slots <= MOST_SLOTS:
            raise UsageError(f"a worker has 1 to {MOST_SLOTS:,} slots, not {slots}")
        self.handled = 0
        self._queue = queue
        self._handlers = handlers
        self._owner = check_owner(owner)
        self._slots = slots
        self._lease = check_lease(lease)
        self._threads = anyio.CapacityLimiter(slots)
        self._running: set[Attempt] = set()
        self._deadlines = Deadlines(self._running)
        self._outage = Outage("worker")
        self._held = 0
        self._promised = 0
        self._is_sated = False
        self._is_refused = False
        self._workers: HandlerTasks | None = None
        self._waiting: deque[Attempt] = deque()
        self._idle: list[asyncio.Event] = []
        self._is_rousing = False
        self._is_quick = True
        self._has_room = anyio.Event()
        self._ended: list[tuple[Attempt, Outcome]] = []
        self._has_ended = anyio.Event()
        self._is_awake = anyio.Event()
        self._is_stopping = False

    def wake(self) -> None:
        """There may be work."""
        self._is_awake.set()

    async def room(self, count: int) -> None:
        """Waits a moment for room for so many; whose work turned out to take longer is not waited for."""
        needed = min(count, self._slots)
        if self._is_quick and self._workers is not None and self._free < needed:
            with anyio.move_on_after(BRIEF_S):
                while self._free < needed and not self._is_stopping:
                    self._has_room = anyio.Event()
                    await self._has_room.wait()
            self._is_quick = self._free >= needed

    def wanted(self) -> ClaimRequest | None:
        """What there is room for now, for who can claim it elsewhere; the room is held until `take`."""
        if self._workers is None or self._is_stopping or not self._handlers or self._free < 1:
            return None
        request = ClaimRequest(
            owner=self._owner, limit=self._free, reaction_ids=tuple(self._handlers), lease=self._lease
        )
        self._promised += request.limit
        return request

    def take(self, request: ClaimRequest, tasks: Sequence[Task]) -> None:
        """Begins what was claimed for it."""
        self._promised -= request.limit
        begun = list(dealt(tasks, self._handlers))
        self._running.update(begun)
        self._held += len(tasks)
        self._waiting.extend(begun)
        self._has_room.set()
        if self._workers is not None:
            self._rouse(self._workers)
        if self._is_refused or self._is_stopping:
            self._is_refused = False
            self.wake()

    def stop(self) -> None:
        """Claims nothing more; `run` returns when everything that was claimed is settled."""
        self._is_stopping = True
        self._has_room.set()
        self.wake()

    async def run(self) -> None:
        async with self._at_work():
            while not self._is_stopping:
                self._is_awake = anyio.Event()
                claimed = await self._claim()
                await self._rest(claimed)
            await self._drain()

    async def run_once(self) -> int:
        """Works off what is due now, and what that makes due; how many tasks that were.

        It ends when all that it claimed was released, which is due again at once.
        """
        async with self._at_work():
            handled = -1
            while handled < self.handled and (await self._claim()).tasks:
                handled = self.handled
                await self._drain()
        return self.handled

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        self._idle, self._is_rousing = [], False
        async with anyio.create_task_group() as group:
            workers = self._workers = HandlerTasks(group)
            group.start_soon(self._beat)
            group.start_soon(self._settle)
            try:
                yield
            finally:
                self._workers = None
                self._deadlines.close()
                await workers.end()
            group.cancel_scope.cancel()

    @property
    def _free(self) -> int:
        return self._slots - self._promised - self._held

    async def _claim(self) -> Claimed:
        self._is_sated = False
        request = self.wanted()
        if request is None:
            self._is_refused = self._promised > 0  # it looks again when that is answered
            return Claimed(())
        claimed = Claimed(())
        try:
            claimed = await self._queue.claim(request)
        except TapeError as error:
            return Claimed((), self._outage.failed(error))
        finally:
            self.take(request, claimed.tasks)
        self._outage.over()
        self._is_sated = claimed.is_all and not claimed.tasks
        return claimed

    def _rouse(self, workers: HandlerTasks) -> None:
        """Has one more task take what waits. Each rouses the next, so that quick work is done by few."""
        if self._waiting and not self._is_rousing:
            self._is_rousing = True
            if self._idle:
                self._idle.pop().set()
            else:
                workers.start(partial(self._work, workers))

    async def _work(self, workers: HandlerTasks) -> None:
        """Takes one thing after the other: beginning a task for each would cost more than most handlers do.

        A scope serves until something in it was cancelled.
        """
        while True:
            with anyio.CancelScope() as scope:
                while not scope.cancel_called:
                    self._is_rousing = False
                    await self._turn(workers, scope)
                    await self._pause(scope)

    async def _pause(self, scope: anyio.CancelScope) -> None:
        """Until there is something to take; if there is already, others get their turn."""
        if self._waiting or scope.cancel_called:
            await checkpoint()
        else:
            is_roused = asyncio.Event()
            self._idle.append(is_roused)
            await is_roused.wait()

    async def _turn(self, workers: HandlerTasks, scope: anyio.CancelScope) -> None:
        """Some things, one after the other, until one of them was cancelled."""
        is_seen = is_watched()
        for _ in range(TURN):
            if not self._waiting or scope.cancel_called:
                return
            running = self._waiting.popleft()
            self._rouse(workers)
            if running.is_lost:
                self._forget(running)
            else:
                await self._attempt(running, scope, is_seen)

    async def _attempt(self, running: Attempt, scope: anyio.CancelScope, is_seen: bool) -> None:
        running.begin(scope, self._handlers[running.tasks[0].reaction_id].timeout, self._give_up)
        self._deadlines.watch(running)
        answer: object = None
        try:
            answer = await self._answer(running, is_seen)
            if not self._is_ending(running):
                await clear_cancellation()
        finally:
            running.end()
            if running.is_cancelled and not running.is_left:
                self._give_up(running)
        if not running.is_cancelled:
            self._end(running, outcome_of(answer))

    def _give_up(self, running: Attempt) -> None:
        """Ends an attempt that was cancelled: one that is late has failed, one that lost its lease is another's."""
        timeout = self._handlers[running.tasks[0].reaction_id].timeout
        if running.is_lost or timeout is None:
            self._forget(running)
        else:
            self._end(running, outcome_of(exceeded(timeout)))

    def _end(self, running: Attempt, outcome: Outcome) -> None:
        self._ended.append((running, outcome))
        if len(self._ended) == 1:
            self._has_ended.set()

    async def _rest(self, claimed: Claimed) -> None:
        """Until there may be work and a slot for it; hints may be lost, so not for ever."""
        if claimed.tasks and self._free > 0:
            return
        wait_s = POLL_S if claimed.more_after is None else min(claimed.more_after.total_seconds(), POLL_S)
        with anyio.move_on_after(wait_s):
            await self._is_awake.wait()

    def _is_ending(self, running: Attempt) -> bool:
        """Whether the loop cancels an attempt, and not its own handler."""
        return running.is_cancelled or self._workers is None

    async def _answer(self, running: Attempt, is_seen: bool) -> object:
        tasks, first = running.tasks, running.tasks[0]
        cause = first.source_global_seq if len(tasks) == 1 else max(task.source_global_seq for task in tasks)
        handler = self._handlers[first.reaction_id]
        try:
            with caused_by(cause):
                if not (is_seen or first.trace_id):
                    return await handler.handle(tasks, self._threads)
                with span(f"handle {first.reaction_id}", first.trace_id, first.span_id):
                    return await handler.handle(tasks, self._threads)
        except asyncio.CancelledError:
            if self._is_ending(running):
                raise
            return Retry("the handler was cancelled by itself or by something that it called")
        except Exception as error:  # noqa: BLE001 - a handler may raise anything, and that is its answer
            return error

    async def _settle(self) -> None:
        """Settles together what ended while the last settling ran."""
        while True:
            await self._has_ended.wait()
            self._has_ended = anyio.Event()
            ended, self._ended = self._ended, []
            settlements = [
                Settlement(Claim(task.task_id, task.lease_owner, task.attempt), outcome)
                for running, outcome in ended
                for task in running.tasks
            ]
            try:
                with anyio.CancelScope(shield=True):
                    answers = await self._queue.settle(settlements)
            except TapeError as error:
                self._ended = [*ended, *self._ended]
                await self._outage.wait(error)
                self._has_ended.set()
                continue
            for stale in filter(None, answers):
                log.warning("task.stale", reason=str(stale))
            self.handled += sum(not isinstance(each.outcome, Released) for each in settlements)
            self._is_sated &= all(isinstance(outcome, Done) for _, outcome in ended)
            self._forget(*(running for running, _ in ended))

    async def _beat(self) -> None:
        """Keeps the leases of what runs; what it no longer holds is stopped."""
        while True:
            await anyio.sleep(self._lease.total_seconds() / BEATS)
            holders = [running for running in self._running for _ in running.tasks]
            claims = [claim for running in self._running for claim in running.claims]
            try:
                answers = await self._queue.extend(claims, self._lease) if claims else ()
            except TapeError as error:
                self._outage.failed(error)
                continue
            for running, stale in zip(holders, answers, strict=False):
                if stale is not None:
                    running.lose()

    def _forget(self, *ended: Attempt) -> None:
        """Makes room, for which there is a use unless everything that was due is claimed."""
        self._running.difference_update(ended)
        self._held -= sum(len(running.tasks) for running in ended)
        self._is_quick |= not self._held
        self._has_room.set()
        if not self._is_sated or self._is_stopping:
            self.wake()

    async def _drain(self) -> None:
        while self._running or self._promised:
            self._is_awake = anyio.Event()
            await self._is_awake.wait()
