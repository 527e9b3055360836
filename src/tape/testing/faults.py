"""Faults by a seed: refused appends, lost answers, crashing attempts.

The same seed gives the same faults: a fault depends on the seed and on the operation, not on the order of operations,
so tasks and threads may be scheduled in any order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeVar

import anyio

from tape.core.errors import UsageError
from tape.core.sequence import AppendRequest
from tape.core.task import Task
from tape.work.handler import Handler

AppendFate = Literal["refused", "lost"]
HandlerFate = Literal["before", "after"]

Fate = TypeVar("Fate", bound=str)


class InjectedFault(Exception):
    """Raised instead of a handler's own result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often operations fail, from 0 (never) to 1 (always).

    `append`: half of these appends are refused with nothing written, the other half lose their answer. `handler`: half
    of these attempts fail before the function is called, the other half after it has returned, so that it is called
    again. `most` limits the faults of one operation.
    """

    seed: int = 0
    append: float = 0.0
    handler: float = 0.0
    most: int = 2
    _struck: Counter[str] = field(default_factory=Counter, repr=False)
    _seen: Counter[str] = field(default_factory=Counter, repr=False)

    def __post_init__(self) -> None:
        for name, rate in (("append", self.append), ("handler", self.handler)):
            if not 0 <= rate <= 1:
                raise UsageError(f"{name} is a share from 0 to 1, not {rate}")

    def of_append(self, request: AppendRequest) -> AppendFate | None:
        return self._draw(f"append {_identity(request)}", self.append, "refused", "lost")

    def of_attempt(self, task: Task) -> HandlerFate | None:
        return self._draw(f"handler {task.reaction_id} {task.source_global_seq}", self.handler, "before", "after")

    @property
    def struck(self) -> int:
        """How many faults were injected."""
        return sum(self._struck.values())

    def _draw(self, what: str, rate: float, early: Fate, late: Fate) -> Fate | None:
        self._seen[what] += 1
        if self._struck[what] >= self.most:
            return None
        chance = int.from_bytes(sha256(f"{self.seed} {self._seen[what]} {what}".encode()).digest()[:8]) / (1 << 64)
        if chance >= rate:
            return None
        self._struck[what] += 1
        return early if chance < rate / 2 else late


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashing(Handler):
    """A handler with injected faults."""

    faults: Faults

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        fate = self.faults.of_attempt(tasks[0])
        if fate == "before":
            raise InjectedFault("a fault was injected before the handler")
        answer = await Handler.handle(self, tasks, threads)
        if fate == "after":
            raise InjectedFault("a fault was injected after the handler")
        return answer


def crashing(handler: Handler, faults: Faults) -> Handler:
    return Crashing(handler.function, handler.batch, handler.takes, faults=faults)


def _identity(request: AppendRequest) -> str:
    """Identifies a request by its content; for ledgers only by its cells, because their content is random."""
    where = [(event.run_id, event.type, event.subject) for event in request.events]
    cells = [(change.id, change.seen) for change in request.cells]
    payloads = [] if cells else [event.payload for event in request.events]
    return sha256(repr((where, cells, payloads, request.key)).encode()).hexdigest()
