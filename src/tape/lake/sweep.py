"""A sweep: forks of one run at one seq, each with another mutation, played on Spark and appended as runs."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from tape.bus.journal import Journal
from tape.core.child import find_refusal
from tape.core.codec import JsonValue
from tape.core.errors import LimitReached, UsageError
from tape.core.event import Entry, Event
from tape.core.fork import Fork
from tape.core.fork_request import new_run_id
from tape.core.ids import RunId, Seq
from tape.core.run import RunRecord
from tape.core.sequence import split_requests
from tape.lake.continuations import Continuation, LoadProducer, PlannedFork, ReplayTask, continuations
from tape.runs.forks import ForkSpec, check_parent
from tape.runs.outcomes import SweptRun, differing, outcomes
from tape.runs.replay import inherited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST: Final = 1_000
AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOrder:
    """Where the forks part from their parent, the values of each field, the producer and its turns."""

    at_seq: int
    vary: Mapping[str, Sequence[JsonValue]]
    n_turns: int
    producer: str
    reason: str | None = None

    def __post_init__(self) -> None:
        ForkSpec(at_seq=self.at_seq, n_turns=self.n_turns)
        count = len(list(self.mutations()))
        if not self.vary or not 1 <= count <= MOST:
            raise UsageError(f"a sweep is 1 to {MOST:,} forks, not {count if self.vary else 0:,}")

    def mutations(self) -> Iterator[dict[str, JsonValue]]:
        """Every combination of values."""
        for values in product(*self.vary.values()):
            yield dict(zip(self.vary, values, strict=True))


async def sweep(
    spark: SparkSession, journal: Journal, parent: RunRecord, order: SweepOrder, load: LoadProducer
) -> list[SweptRun]:
    """Plays all forks in one job, then appends each as a run: the fork, its events, and its end.

    Raises UsageError before the first fork is made if one cannot be played.
    """
    forks = list(_forks(parent, order, load))
    prefix = await inherited(journal, parent.run_id, Seq(order.at_seq))
    task = ReplayTask(prefix, load, order.n_turns)
    played = await to_thread.run_sync(continuations, spark, task, forks, abandon_on_cancel=True)
    trunk = [entry async for entry in journal.stream(run_id=parent.run_id, from_seq=order.at_seq + 1, follow=False)]
    append = partial(_append, journal, parent.run_id, order)
    grown = await _run_concurrently([partial(append, *each) for each in zip(forks, played, strict=True)])
    return [_swept(fork, part, trunk, own) for fork, part, own in zip(forks, played, grown, strict=True)]


def _forks(parent: RunRecord, order: SweepOrder, load: LoadProducer) -> Iterator[PlannedFork]:
    check_parent(parent, order.at_seq)
    fork, producer = Fork(parent.run_id, Seq(order.at_seq)), load()
    refused = find_refusal(new_run_id(fork, None), fork, None, parent.head)
    if refused is not None:
        raise refused
    for mutation in order.mutations():
        producer.check_mutation(mutation)
        yield PlannedFork(new_run_id(fork, None), mutation)


async def _run_concurrently(appends: Sequence[Callable[[], Awaitable[list[Entry]]]]) -> list[list[Entry]]:
    """Runs a few appends at a time, so that they share commits."""
    grown: dict[int, list[Entry]] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def run(number: int) -> None:
        async with limiter:
            grown[number] = await appends[number]()

    async with anyio.create_task_group() as tasks:
        for number in range(len(appends)):
            tasks.start_soon(run, number)
    return [grown[number] for number in range(len(appends))]


async def _append(
    journal: Journal, parent: RunId, order: SweepOrder, fork: PlannedFork, played: Continuation
) -> list[Entry]:
    """Appends a fork as a run; it is leased until it ends, so that it is closed even if this process dies."""
    own = await journal.fork(parent, order.at_seq, run_id=fork.run_id, mutation=fork.mutation, reason=order.reason)
    await journal.lease([fork.run_id], os.urandom(16).hex())
    for events in split_requests(played.events):
        own += await _append_events(journal, events)
    if played.error is None:
        await journal.close_run(fork.run_id)
    else:
        await journal.end_run(fork.run_id, "failed", f"{order.producer}: {played.error}")
    return own


async def _append_events(journal: Journal, events: Sequence[Event]) -> list[Entry]:
    while True:
        try:
            return await journal.append(events)
        except LimitReached:
            await journal.drain()


def _swept(fork: PlannedFork, played: Continuation, trunk: Sequence[Entry], own: Sequence[Entry]) -> SweptRun:
    changed = fork.mutation if isinstance(fork.mutation, dict) else {}
    ends = outcomes(trunk, own)
    return SweptRun(fork.run_id, changed, own[-1].seq, differing(trunk, own), ends, played.error)
