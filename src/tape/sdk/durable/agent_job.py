"""Runs durable functions: takes each run that needs a worker, and executes its function."""

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NoReturn

import anyio

from tape.core.background import background
from tape.core.claim import RUN_LEASE, check_lease, check_owner
from tape.core.codec import JsonValue
from tape.core.errors import Conflict, StaleClaim, TapeError
from tape.core.run_state import RunState, RunStatus
from tape.core.text import replace_unstorable
from tape.sdk.durable.budgets import Budget
from tape.sdk.durable.calling import awaited
from tape.sdk.durable.effects import mark_in_doubt
from tape.sdk.durable.errors import CANNOT_CONTINUE, Interrupted, Parked, refusal_in
from tape.sdk.durable.outbox_waits import OutboxWaits
from tape.sdk.durable.run_context import RunContext, in_run
from tape.sdk.nouns.node import AsyncNode
from tape.telemetry import log

RENEWALS_PER_LEASE: Final = 3  # renewals per lease, so that two may fail

Function = Callable[[RunState], Any]


class AgentJob:
    """A polled job: executes each run of an application that is runnable or whose worker's lease has ended."""

    def __init__(
        self,
        node: AsyncNode,
        app: str | None,
        function: Function,
        *,
        owner: str,
        lease: timedelta = RUN_LEASE,
        budget: Budget | None = None,
        threads: int = 4,
        waiting: OutboxWaits | None = None,
    ) -> None:
        self._node = node
        self._app = app
        self._function = function
        self._owner = check_owner(owner)
        self._lease = check_lease(lease)
        self._budget = budget
        self._threads = anyio.CapacityLimiter(threads)
        self._waiting = waiting or OutboxWaits()

    async def due(self, limit: int) -> Sequence[RunState]:
        return await self._node.runs.to_recover(self._app, limit)

    def name(self, item: RunState) -> str:
        return item.run_id

    async def run(self, item: RunState) -> bool:
        begun = await self._node.runs.take(item.run_id, self._owner, self._lease)
        if begun.is_acquired:
            await self.execute(begun.run)
        return begun.is_acquired

    async def resume(self, run_id: str) -> RunState:
        """Executes one run now and returns its state afterwards."""
        begun = await self._node.runs.take(run_id, self._owner, self._lease)
        if begun.run.is_active and not begun.is_acquired:
            raise Conflict(f"{begun.run.claim.owner!r} works on run {run_id!r}; come back when its lease has ended")
        if begun.is_acquired:
            await self.execute(begun.run)
        return await self._node.runs.get(run_id)

    async def execute(self, run: RunState) -> None:
        """Executes the function and records how it ended.

        A run that waits at a gate is parked. A run that the store or another worker interrupts is left to the worker
        that recovers it.
        """
        context = await RunContext.of(self._node, run, self._waiting)
        scope = anyio.CancelScope()
        with scope, self._waiting.function():
            async with background(partial(self._renew_lease, context, scope)):
                await self._settle(context)
        if scope.cancelled_caught:
            log.info("run.left", run_id=run.run_id, owner=self._owner)

    async def _settle(self, context: RunContext) -> None:
        try:
            if self._budget is not None:
                await self._budget.set(context)
            result = await self._call(context)
            await self._end(context, RunStatus.TERMINAL, result)
        except (Interrupted, BaseExceptionGroup) as error:
            await self._interrupted(context, error)
        except CANNOT_CONTINUE as error:
            self._leave(context, error)
        except Exception as error:  # noqa: BLE001 - whatever the function raises is how its run ended
            await self._fail(context, error)

    async def _interrupted(self, context: RunContext, error: BaseException) -> None:
        """An interruption in any of the function's own tasks interrupts the run, unless another task failed."""
        rest: BaseException | None = error.split(Interrupted)[1] if isinstance(error, BaseExceptionGroup) else None
        if isinstance(rest, Exception):
            await self._fail(context, rest)
        elif rest is not None:
            raise rest
        else:
            self._leave(context, error)

    def _leave(self, context: RunContext, error: BaseException) -> None:
        parts = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
        if any(isinstance(part, Parked) for part in parts):
            log.info("run.parked", run_id=context.run_id)
        else:
            why = error.__cause__ or error
            log.warning("run.left", run_id=context.run_id, owner=self._owner, error=type(why).__name__)

    async def _fail(self, context: RunContext, error: Exception) -> None:
        """Ends a run as failed, unless the program is at fault or a step has no outcome: then nothing is undone."""
        refusal, interruption = context.steps.refusal or refusal_in(error), context.steps.interruption
        if refusal is not None:
            log.warning("run.refused", run_id=context.run_id, owner=self._owner, reason=str(refusal))
            return
        if interruption is not None and not isinstance(interruption, Parked):
            self._leave(context, interruption)
            return
        log.warning("run.failed", run_id=context.run_id, error=type(error).__name__)
        try:
            await self._end(
                context, RunStatus.FAILED, {"type": type(error).__name__, "message": replace_unstorable(str(error))}
            )
        except CANNOT_CONTINUE as lost:
            self._leave(context, lost)

    async def _call(self, context: RunContext) -> Any:
        """The function's result or error, after the steps in its other tasks have ended too.

        The lease is renewed until then, so that their outcomes are recorded; the end of the run depends on them.
        """
        try:
            result = await self._called(context)
        except (Exception, Interrupted, BaseExceptionGroup):
            await context.steps.close()
            raise
        await context.steps.close()
        context.steps.check()  # a function that caught a refused step has no result
        return result

    async def _called(self, context: RunContext) -> Any:
        with in_run(context):
            if inspect.iscoroutinefunction(self._function):
                return await awaited(self._function(context.run))
            call = partial(self._function, context.run)
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._threads)

    async def _end(self, context: RunContext, status: RunStatus, detail: JsonValue) -> None:
        if context.steps.is_cut:
            await mark_in_doubt(context)
        try:
            await self._node.runs.end(context.run_id, status, detail, fence=context.fence)
        except StaleClaim:
            raise
        except Conflict as error:  # it has ended in another way, for example because it was cancelled
            log.info("run.ended_before", run_id=context.run_id, reason=str(error))

    async def _renew_lease(self, context: RunContext, scope: anyio.CancelScope) -> NoReturn:
        """Renews the lease; cancels the function if the lease was lost or the run has ended."""
        while True:
            await anyio.sleep(self._lease.total_seconds() / RENEWALS_PER_LEASE)
            try:
                is_ours = (await self._node.runs.heartbeat(context.run_id, context.fence)).is_active
            except StaleClaim:
                is_ours = False
            except TapeError as error:
                log.warning("run.not_renewed", run_id=context.run_id, error=type(error).__name__)
                continue
            if not is_ours:
                scope.cancel()
