"""Delivers one event to one handler: once in the transaction that records it, or at least once."""

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import anyio

from tape.core.errors import UsageError
from tape.core.outbox import HandlerSubscription, OutboxEvent
from tape.core.task import Task, TaskClaim
from tape.outbox.failures import is_terminal
from tape.outbox.publisher import log_fields
from tape.store.outbox.deliveries import ClaimedDelivery, Deliveries
from tape.telemetry import log
from tape.work.answers import Dead, Release
from tape.work.deadline import DEADLINE, check_deadline
from tape.work.threads import call_in_thread

EventHandler: TypeAlias = Callable[[OutboxEvent], Awaitable[None]] | Callable[..., Any]
Transaction: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class DeliveryHandler:
    """A user's function. If it takes a connection, it writes in the transaction that settles the delivery."""

    function: Callable[..., Any]
    subscription: HandlerSubscription
    deliveries: Deliveries
    transaction: Transaction
    timeout: timedelta | None = None
    batch: int = 1
    takes_connection: bool = field(init=False, repr=False)
    is_async: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes_connection", takes_connection(self.function))
        object.__setattr__(self, "is_async", is_async(self.function))

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        (task,) = tasks
        claim = task.claim
        began, held = time.monotonic(), self.deliveries.claimed(claim)
        result = "failed"
        try:
            await self._deliver(claim, held, threads)
            result = "delivered"
        except Release:
            result = "released"
            raise
        except Exception as error:
            if is_terminal(error):
                raise Dead(f"{type(error).__name__}: {error}") from error
            result = "retry"
            raise
        finally:
            log.info(
                "outbox.handled",
                status_result=result,
                handler_name=held.handler_name,
                attempts=held.attempts,
                duration_ms=round((time.monotonic() - began) * 1000, 3),
                **log_fields(held.event, self.subscription.generation, self.subscription.channel),
            )
        return None

    async def _deliver(self, claim: TaskClaim, held: ClaimedDelivery, threads: anyio.CapacityLimiter) -> None:
        if self.takes_connection:
            await self._deliver_once(claim, held, threads)
        elif not held.is_handled:
            await self._run(threads, held, held.event)

    async def _deliver_once(self, claim: TaskClaim, held: ClaimedDelivery, threads: anyio.CapacityLimiter) -> None:
        try:
            async with self.transaction() as connection:
                if await self.deliveries.begin(connection, held):
                    await self._run(threads, held, held.event, connection)
                await self.deliveries.finish(connection, claim)
        except BaseException:
            self.deliveries.unfinish(claim)
            raise

    async def _run(self, threads: anyio.CapacityLimiter, held: ClaimedDelivery, *arguments: object) -> None:
        if self.is_async:
            await self.function(*arguments)
            return
        call = partial(self.function, *arguments)
        if self.takes_connection:  # the thread cannot be abandoned: it would keep using a connection of the pool
            answer = await anyio.to_thread.run_sync(call, limiter=threads)
        else:
            names = {"reaction_id": held.handler_name, "task_id": str(held.event.event_id)}
            answer = await call_in_thread(call, threads, names)
        if inspect.isawaitable(answer):  # for example a lambda around an async function
            await answer


def deadline_of(function: Callable[..., Any], deadline: timedelta | None) -> timedelta | None:
    """The deadline of an attempt, or None for no deadline. A plain function that takes a connection has none.

    It runs in a thread, which cannot be stopped and would go on writing in a transaction that has ended.
    """
    is_unstoppable = takes_connection(function) and not is_async(function)
    if deadline is None or (is_unstoppable and deadline is DEADLINE):
        return None
    if is_unstoppable:
        raise UsageError(
            "a handler that writes and is not async cannot be stopped; give its statements a timeout instead"
        )
    return check_deadline(deadline)


def takes_connection(function: Callable[..., Any]) -> bool:
    """Whether a handler takes a connection besides the event."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = [each for each in inspect.signature(function).parameters.values() if each.kind not in variadic]
    given = [each for each in taken if each.default is each.empty]
    is_named = any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in given)
    if is_named or len(given) not in (1, 2):
        named = ", ".join(each.name for each in given)
        raise UsageError(f"a handler takes an event, or an event and a connection, not ({named})")
    return len(given) == 2


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or the `__call__` of an object, is async."""
    called = getattr(function, "__call__", None)  # noqa: B004 - its value is needed, not its presence
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
