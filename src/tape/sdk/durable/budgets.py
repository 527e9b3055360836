"""What a durable function may spend: reserved before it is spent, and the rest freed."""

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from types import TracebackType
from typing import Self

from tape.core.errors import Conflict, LimitReached
from tape.sdk.durable.errors import refusal_in
from tape.sdk.durable.run_context import RunContext, call_from_thread, current_run, interruptible
from tape.sdk.durable.steps import enclose, enclosing


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may spend; None means no limit."""

    usd: float | Decimal | None = None
    tokens: int | None = None

    async def set(self, context: RunContext) -> None:
        """Sets the caps of a run that has none."""
        known = await context.node.budgets.get(context.run_id)
        if known.usd_cap_micros is None and known.token_cap is None:
            await context.node.budgets.set(context.run_id, self.usd, self.tokens)


class reserve:  # noqa: N801 - it reads as what it does: `with tape.reserve(usd=1) as spending`
    """Reserves an amount for the duration of a block, or raises LimitReached.

    `spent` sets the actual amount; without it all is spent. A run that is executed again reuses its reservation.
    """

    def __init__(self, *, usd: float | Decimal = 0, tokens: int = 0) -> None:
        self._running = current_run()
        self._outer = enclosing()
        self._usd, self._tokens = usd, tokens
        self._spent: tuple[float | Decimal, int] | None = None

    def spent(self, *, usd: float | Decimal = 0, tokens: int = 0) -> None:
        """Sets the actual amount."""
        self._spent = usd, tokens

    async def __aenter__(self) -> Self:
        await self._begin()
        enclose(self._step)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enclose(self._outer)
        await self._end(error)

    def __enter__(self) -> Self:
        call_from_thread(self._running, "reserve", self._begin)
        enclose(self._step)  # set in this thread: the task that began the step has its own context
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enclose(self._outer)
        call_from_thread(self._running, "reserve", partial(self._end, error))

    @interruptible
    async def _begin(self) -> None:
        """The whole block is a step; the steps inside belong to it."""
        context = self._running
        self._step = context.steps.begin("reserve", is_block=True)
        try:
            self._name = f"reserve-{context.occurrence('reserve')}"
            with suppress(Conflict):  # an earlier execution reserved another amount, which stays
                admission = await context.node.budgets.reserve(context.run_id, self._name, self._usd, self._tokens)
                if not admission.is_admitted:
                    raise LimitReached(admission.reason)
        except BaseException as error:
            context.steps.end(self._step, error)
            raise

    @interruptible
    async def _end(self, error: BaseException | None) -> None:
        context = self._running
        try:
            is_stopped = error is not None and not isinstance(error, Exception)
            if is_stopped or context.steps.refusal is not None or refusal_in(error) is not None:
                return  # refused, parked or stopped: the block will be executed again
            usd, tokens = self._spent or (self._usd, self._tokens)
            with suppress(Conflict):  # an earlier execution spent another amount, which stays
                await context.node.budgets.settle(context.run_id, self._name, usd, tokens)
        finally:
            context.steps.end(self._step)
