"""Rounds: what is due is looked for again and again, and done so much at once."""

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from tape.core.errors import TapeError, UsageError
from tape.telemetry import log

POLL_S: Final = 0.25
MOST_SLOTS: Final = 1_000

T = TypeVar("T")


class Errand(Protocol[T]):
    """Something that falls due: found by anybody, claimed by one, done and settled by that one."""

    async def due(self, limit: int) -> Sequence[T]: ...
    def name(self, item: T) -> str: ...
    async def run(self, item: T) -> bool:
        """Whether it was ours: it was claimed, and it is settled as far as it can be."""
        ...


class Rounds(Generic[T]):
    """Does one kind of errand for as long as it runs; `stop` lets what was begun come to its end."""

    def __init__(self, errand: Errand[T], *, slots: int = 4) -> None:
        if not 1 <= slots <= MOST_SLOTS:
            raise UsageError(f"a worker has 1 to {MOST_SLOTS:,} slots, not {slots}")
        self.done = 0
        self._errand = errand
        self._slots = slots
        self._in_hand: set[str] = set()
        self._is_stopping = anyio.Event()
        self._has_room = anyio.Event()

    def stop(self) -> None:
        """Begins nothing more; `run` returns when everything that was begun has ended."""
        self._is_stopping.set()
        self._has_room.set()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            while not self._is_stopping.is_set():
                await self._rest(await self._begin(tasks))

    async def run_once(self) -> int:
        """Does what is due now, and what that makes due; how much that was."""
        before = -1
        while self.done > before:
            before = self.done
            async with anyio.create_task_group() as tasks:
                await self._begin(tasks)
        return self.done

    async def _begin(self, tasks: TaskGroup) -> int:
        """Begins as much of what is due as there is room for; how much that is."""
        self._has_room = anyio.Event()
        room = self._slots - len(self._in_hand)
        if room < 1:
            return 0
        fresh = [item for item in await self._due() if self._errand.name(item) not in self._in_hand][:room]
        for item in fresh:
            self._in_hand.add(self._errand.name(item))
            tasks.start_soon(self._do, item)
        return len(fresh)

    async def _due(self) -> Sequence[T]:
        try:
            return await self._errand.due(self._slots + len(self._in_hand))
        except TapeError as error:
            log.warning("errand.unavailable", errand=type(self._errand).__name__, reason=str(error))
            return ()

    async def _do(self, item: T) -> None:
        try:
            self.done += await self._errand.run(item)
        except TapeError as error:
            log.warning("errand.failed", errand=type(self._errand).__name__, reason=str(error))
        finally:
            self._in_hand.discard(self._errand.name(item))
            self._has_room.set()

    async def _rest(self, begun: int) -> None:
        """Until there is room again, or there may be something due."""
        with anyio.move_on_after(None if len(self._in_hand) >= self._slots else POLL_S):
            await (self._has_room if begun else self._is_stopping).wait()
