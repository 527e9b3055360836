"""The steps of a run, one at a time: they are numbered when they begin, and concurrent ones have no stable order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import anyio

from tape.sdk.durable.errors import CANNOT_CONTINUE, Interrupted, StepRefused

ONE_BY_ONE: Final = (
    "the steps of a durable function follow one another, so await each before the next, or do the concurrent work "
    "inside one effect"
)


@dataclass(slots=True, eq=False)
class Step:
    """A step that has begun, and its enclosing step; a block has no outcome of its own."""

    name: str
    parent: "Step | None"
    is_block: bool = False
    is_over: bool = False


_INSIDE: Final[ContextVar[Step | None]] = ContextVar("tape_step", default=None)


def enclosing() -> Step | None:
    """The step that the calling code is part of."""
    return _under_way(_INSIDE.get())


def enclose(step: Step | None) -> None:
    """Makes the calls of this task or thread from now on part of a step, or of none."""
    _INSIDE.set(step)


class Steps:
    """The steps of one execution of a durable function.

    A step may begin inside another, also in tasks and threads that one starts; any other step must wait until it is
    over. A step that does not wait is refused, and so is every later one, because the order of the run's steps is
    unknown.

    `interruption` is why a step could not complete; `is_cut` says that a step was cancelled by its own function.
    """

    def __init__(self, run_id: str) -> None:
        self.refusal: StepRefused | None = None
        self.interruption: BaseException | None = None
        self.is_cut = False
        self._run_id = run_id
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._newest: Step | None = None
        self._is_idle = anyio.Event()
        self._is_idle.set()

    def check(self) -> None:
        """Raises if a step was refused or interrupted."""
        for error in (self.refusal, self.interruption):
            if error is not None:
                raise error

    def refuse(self, why: str) -> StepRefused:
        """Refuses this step and all later ones; returns the error to raise."""
        self.refusal = StepRefused(f"run {self._run_id!r}: {why}")
        return self.refusal

    def begin(self, name: str, *, is_block: bool = False) -> Step:
        self._check_loop(name)
        self.check()
        if self._is_closed and _acting(enclosing()) is None:
            raise Interrupted(f"run {self._run_id!r}: the function has ended before step {name!r} was begun")
        if self._newest is not None and enclosing() is not self._newest:
            other = self._newest.name
            raise self.refuse(f"step {name!r} begins while step {other!r} is under way in another task; {ONE_BY_ONE}")
        if _acting(self._newest) is None and not is_block:
            self._is_idle = anyio.Event()
        self._newest = Step(name, self._newest, is_block)
        return self._newest

    def end(self, step: Step, error: BaseException | None = None) -> None:
        """Ends a step, with its error if there is one."""
        step.is_over = True
        if isinstance(error, (Interrupted, *CANNOT_CONTINUE)):
            self.interruption = error
        elif error is not None and not isinstance(error, Exception):
            self.is_cut = True
        self._newest = _under_way(self._newest)
        if _acting(self._newest) is None:
            self._is_idle.set()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step for the duration of a block; the block's calls belong to it."""
        step = self.begin(name)
        token = _INSIDE.set(step)
        failure: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failure = error
            raise
        finally:
            _INSIDE.reset(token)
            self.end(step, failure)

    async def close(self) -> None:
        """Returns when no step is in progress; afterwards steps begin only inside one that is.

        A block that was left open does not count, because it may never end.
        """
        self._is_closed = True
        await self._is_idle.wait()

    def _check_loop(self, name: str) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise self.refuse(
                f"step {name!r} is taken in another event loop than the run's; make the durable function async and "
                "await the step there, or call it outside asyncio.run"
            )


def _under_way(step: Step | None) -> Step | None:
    while step is not None and step.is_over:
        step = step.parent
    return step


def _acting(step: Step | None) -> Step | None:
    """The innermost step in progress that has an outcome."""
    while step is not None and (step.is_over or step.is_block):
        step = step.parent
    return step
