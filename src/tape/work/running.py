"""Work in hand."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import anyio

from tape.core.task import Claim, Task


class Works(Protocol):
    """What the loop asks of a handler: its answer for up to `batch` tasks, which it may give by raising."""

    @property
    def batch(self) -> int: ...
    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object: ...


@dataclass(slots=True, eq=False)
class Running:
    """Work in hand, and the scope of the hand that has begun it."""

    tasks: Sequence[Task]
    scope: anyio.CancelScope | None = None
    is_lost: bool = False

    def lose(self) -> None:
        """Stops it, or lets it not begin: its lease was lost, and with it the right to settle."""
        self.is_lost = True
        if self.scope is not None:
            self.scope.cancel()

    @property
    def claims(self) -> list[Claim]:
        return [Claim(task.task_id, task.lease_owner, task.attempt) for task in self.tasks]


def dealt(tasks: Sequence[Task], handlers: Mapping[str, Works]) -> Iterator[Running]:
    """The tasks as their handlers take them: one by one, or in batches."""
    if len(tasks) == 1:
        yield Running(tasks)
        return
    for reaction_id, group in groupby(sorted(tasks, key=_reaction_of), key=_reaction_of):
        size = handlers[reaction_id].batch
        if size == 1:
            yield from (Running((task,)) for task in group)
        else:
            mine = list(group)
            yield from (Running(mine[first : first + size]) for first in range(0, len(mine), size))


def is_stopped() -> bool:
    """Whether somebody stops this very task, and not only something that it has waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reaction_of(task: Task) -> str:
    return task.reaction_id
