"""A replay: a producer continues a child in a thread until it finishes, fails or is stopped."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import anyio

from tape.bus.journal import Journal
from tape.core.background import background
from tape.core.codec import JsonValue
from tape.core.errors import BrokerOverflowError, RunClosed
from tape.core.event import Entry
from tape.core.ids import RunId, Seq
from tape.core.producer import Producer
from tape.runs.sink import RunSink
from tape.runs.thread import run_in_thread
from tape.telemetry import log

Outcome: TypeAlias = Literal["done", "failed", "closed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySpec:
    """What to replay: the producer, the child and its fork point, the mutation, and how many turns."""

    child: RunId
    at_seq: Seq
    producer: Producer
    mutation: JsonValue
    n_turns: int


@dataclass(slots=True, kw_only=True)
class Replay:
    """One running producer; `outcome` is how it ended, and `reason` why it failed."""

    journal: Journal
    work: ReplaySpec
    threads: anyio.CapacityLimiter
    on_appended: Callable[[int], None]
    outcome: Outcome = "cancelled"
    reason: str | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    _is_playing: bool = False
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def abandon(self) -> None:
        """Abandons a producer whose child has ended."""
        if self._is_playing:
            self.outcome = "closed"
            self._scope.cancel()

    def stop(self) -> None:
        """Cancels the replay; the producer's next `emit` raises, and nothing more is stored."""
        self._scope.cancel()

    async def perform(self) -> None:
        """Runs the producer to its end and closes the child in any case."""
        try:
            with self._scope:
                await self._play()
        finally:
            log.info("replay.ended", run_id=self.work.child, producer=self.work.producer.name, outcome=self.outcome)
            self.over.set()

    async def _play(self) -> None:
        try:
            await self._produce()
            await self.journal.close_run(self.work.child)
            self.outcome = "done"
        except Exception as error:  # noqa: BLE001 - a producer may raise anything, and the server goes on
            if isinstance(error, RunClosed) and error.run_id == self.work.child:
                self.outcome = "closed"
            else:
                await self._fail(error)

    async def _produce(self) -> None:
        sink = RunSink(self.journal, self.work.child, self.on_appended)
        self._is_playing = True
        try:
            async with background(sink.run):
                try:
                    async with self.threads:
                        await run_in_thread(partial(self._loop, await self._prefix(), sink))
                except Exception:
                    await sink.drain()  # events emitted before the failure are stored
                    raise
                await sink.drain()
        finally:
            self._is_playing = False
            sink.end(RunClosed(self.work.child))

    def _loop(self, prefix: Sequence[Entry], sink: RunSink) -> None:
        """The producer itself, in its thread."""
        self.work.producer(prefix, self.work.mutation, self.work.n_turns, sink)

    async def _prefix(self) -> list[Entry]:
        return await inherited(self.journal, self.work.child, self.work.at_seq)

    async def _fail(self, error: Exception) -> None:
        self.outcome = "failed"
        self.reason = error_text(error)
        frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        facts = {"run_id": self.work.child, "producer": self.work.producer.name, "error": type(error).__name__}
        log.warning("replay.failed", **facts, frames=frames)
        try:
            await self.journal.end_run(self.work.child, "failed", f"{self.work.producer.name}: {self.reason}")
        except Exception as refused:  # noqa: BLE001 - its lease ends, and then another process closes the child
            log.warning("run.not_ended", run_id=self.work.child, error=type(refused).__name__)


async def inherited(journal: Journal, run_id: RunId, at_seq: Seq) -> list[Entry]:
    """The entries of a run up to a seq that still exist."""
    try:
        return await read_through(journal, run_id, Seq(1), at_seq)
    except BrokerOverflowError as gap:
        return await read_through(journal, run_id, Seq(gap.available_from), at_seq)


async def read_through(journal: Journal, run_id: RunId, from_seq: Seq, at_seq: Seq) -> list[Entry]:
    found: list[Entry] = []
    if from_seq > at_seq:
        return found
    async with aclosing(journal.stream(run_id=run_id, from_seq=from_seq, follow=False)) as entries:
        async for entry in entries:
            if entry.seq > at_seq:
                break
            found.append(entry)
    return found


def error_text(error: Exception) -> str:
    """The type and message of an error; only the type if its `__str__` fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the error is the producer's, and so is what it says of itself
        return type(error).__name__
