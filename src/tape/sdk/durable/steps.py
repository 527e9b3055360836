"""The steps of a run, one at a time: a step is numbered when it begins, and two at once have no order to rely on."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import anyio

from tape.sdk.durable.answers import ConcurrentSteps


@dataclass(slots=True, eq=False)
class Step:
    """A step that has begun, and the step that it was begun in."""

    name: str
    parent: "Step | None"
    is_over: bool = False


_INSIDE: Final[ContextVar[Step | None]] = ContextVar("tape_step", default=None)


def enclosing() -> Step | None:
    """The step that the code that runs now is part of."""
    return _under_way(_INSIDE.get())


def enclose(step: Step | None) -> None:
    """Makes what this task or thread does from now on part of a step, or of none."""
    _INSIDE.set(step)


class Steps:
    """The steps of one execution of a durable function.

    A step may be begun within another, by whatever tasks and threads that one starts; any other step has to wait until
    it is over. One that does not is refused, and so is every later one: the order of the run's steps is unknown.
    """

    def __init__(self, run_id: str) -> None:
        self.refusal: ConcurrentSteps | None = None
        self._run_id = run_id
        self._newest: Step | None = None
        self._is_idle = anyio.Event()
        self._is_idle.set()

    def check(self) -> None:
        """Refuses to go on after a step was refused."""
        if self.refusal is not None:
            raise self.refusal

    def refuse(self, why: str) -> ConcurrentSteps:
        """Refuses a step and all that follow; the error to raise."""
        self.refusal = ConcurrentSteps(
            f"run {self._run_id!r}: {why}; the steps of a durable function follow one another, so await each before "
            "the next, or do the concurrent work inside one effect"
        )
        return self.refusal

    def begin(self, name: str) -> Step:
        self.check()
        if self._newest is not None and enclosing() is not self._newest:
            raise self.refuse(f"step {name!r} begins while step {self._newest.name!r} is under way in another task")
        if self._newest is None:
            self._is_idle = anyio.Event()
        self._newest = Step(name, self._newest)
        return self._newest

    def end(self, step: Step) -> None:
        step.is_over = True
        self._newest = _under_way(self._newest)
        if self._newest is None:
            self._is_idle.set()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step for as long as a block lasts; what the block calls belongs to it."""
        step = self.begin(name)
        token = _INSIDE.set(step)
        try:
            yield
        finally:
            _INSIDE.reset(token)
            self.end(step)

    async def idle(self) -> None:
        """Returns when no step is under way."""
        await self._is_idle.wait()


def _under_way(step: Step | None) -> Step | None:
    while step is not None and step.is_over:
        step = step.parent
    return step
