"""Creates forks, and runs a producer in them if one is requested."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

import anyio
from anyio.abc import TaskGroup

from tape.bus.journal import Journal
from tape.core.background import background
from tape.core.codec import JsonValue
from tape.core.errors import BrokerOverflowError, LimitReached, TapeError, Unavailable, UsageError
from tape.core.event import Entry
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.producer import TURNS, Producer, check_turns
from tape.core.run import RunRecord
from tape.runs.producers import Producers
from tape.runs.replay import Replay, ReplaySpec
from tape.telemetry import log

MAX_CONCURRENT: Final = 16  # each has a thread
MAX_REPLAYS: Final = 256
SHUTDOWN_S: Final = 2.0
SHUTDOWN_REASON: Final = "the server that replayed it is shutting down"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSpec:
    """A requested fork: where it leaves its parent, its mutation, and the producer that continues it, if any."""

    at_seq: int
    mutation: JsonValue = None
    n_turns: int = TURNS
    producer: str | None = None
    effects: EffectPolicy | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        check_turns(self.n_turns)


class LedgerForks(Protocol):
    """Creates a child together with the ledgers that it inherits."""

    async def fork(
        self,
        parent_run_id: RunId,
        at_seq: int,
        effects: EffectPolicy,
        *,
        mutation: JsonValue = None,
        reason: str | None = None,
    ) -> list[Entry]: ...


class Forks:
    """Creates children and runs their producers, a limited number at once; the others wait.

    Every child with a producer is leased: if this process dies, another one closes it.
    """

    def __init__(
        self,
        journal: Journal,
        producers: Producers | None = None,
        on_appended: Callable[[int], None] = lambda count: None,
        lease: Lease | None = None,
        ledgers: LedgerForks | None = None,
    ) -> None:
        self._journal = journal
        self._ledgers = ledgers
        self._producers = producers or Producers()
        self._on_appended = on_appended
        self._lease = lease or Lease()
        self._lease_owner = os.urandom(16).hex()
        self._expected = 0
        self._threads = anyio.CapacityLimiter(MAX_CONCURRENT)
        self._replays: dict[RunId, Replay] = {}
        self._begun: asyncio.Queue[Replay] = asyncio.Queue()
        self._is_stopping = False

    async def run(self) -> NoReturn:
        """Runs the replays that were started, until it is cancelled."""
        while True:
            async with anyio.create_task_group() as tasks:
                await self._play_in(tasks)

    async def renew_leases(self) -> NoReturn:
        """Renews the leases of running replays; a failed renewal is tried again."""
        while True:
            await anyio.sleep(self._lease.renew.total_seconds())
            if self._replays:
                await self._renew(list(self._replays))

    async def fork(self, parent: RunRecord, spec: ForkSpec) -> RunId:
        """Creates the child, which can be read at once; a producer or mutation that cannot work is refused first."""
        check_parent(parent, spec.at_seq)
        if spec.producer is None:
            return await self._child(parent.run_id, spec)
        producer = self._producers.find(spec.producer)
        producer.check_mutation(spec.mutation)
        with self._reserve_slot():
            child = await self._child(parent.run_id, spec)
            await self._renew([child])
            self._begin(_work(child, spec, producer))
        if self._is_stopping:
            await self.cancel(child, SHUTDOWN_REASON)
        return child

    async def cancel(self, run_id: RunId, reason: str = "") -> Seq:
        """Ends an open run as cancelled, and stops its producer, here or elsewhere."""
        if (replay := self._replays.get(run_id)) is not None:
            replay.stop()
        return await self._journal.end_run(run_id, "cancelled", reason)

    async def settled(self, run_id: RunId) -> Replay | None:
        """Waits for a run's replay to end and returns it; None if it has none."""
        replay = self._replays.get(run_id)
        if replay is not None:
            await replay.over.wait()
        return replay

    async def stop(self) -> None:
        """Cancels all replays and starts no more."""
        self._is_stopping = True
        with anyio.move_on_after(SHUTDOWN_S):
            async with anyio.create_task_group() as tasks:
                for run_id in list(self._replays):
                    tasks.start_soon(self._cancel_for_shutdown, run_id)

    async def _cancel_for_shutdown(self, run_id: RunId) -> None:
        try:
            await self.cancel(run_id, SHUTDOWN_REASON)
        except TapeError as error:
            log.warning("run.not_ended", run_id=run_id, error=type(error).__name__)

    @contextmanager
    def _reserve_slot(self) -> Iterator[None]:
        """Counts one more replay while its child is being created."""
        if self._is_stopping:
            raise Unavailable("the server is shutting down; try again in a moment")
        if len(self._replays) + self._expected >= MAX_REPLAYS:
            raise LimitReached(f"{MAX_REPLAYS:,} replays are running already; try again later")
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1

    async def _child(self, parent: RunId, spec: ForkSpec) -> RunId:
        mutation, reason = spec.mutation, spec.reason
        if spec.effects is None:
            entries = await self._journal.fork(parent, spec.at_seq, mutation=mutation, reason=reason)
        elif self._ledgers is None:
            raise UsageError("effects are kept by ledgers, and this store has none; leave effects out")
        else:
            entries = await self._ledgers.fork(parent, spec.at_seq, spec.effects, mutation=mutation, reason=reason)
        self._on_appended(len(entries))
        return entries[0].run_id

    async def _renew(self, children: Sequence[RunId]) -> None:
        """Renews leases; a replay whose child has ended is stopped."""
        try:
            held = set(await self._journal.lease(children, self._lease_owner))
        except Exception as error:  # noqa: BLE001 - a lease lasts for many renewals, so one may fail
            log.warning("replay.not_leased", count=len(children), error=type(error).__name__)
            return
        for child in children:
            if child not in held and (replay := self._replays.get(child)) is not None:
                replay.abandon()

    def _begin(self, work: ReplaySpec) -> None:
        replay = Replay(journal=self._journal, work=work, threads=self._threads, on_appended=self._on_appended)
        self._replays[work.child] = replay
        self._begun.put_nowait(replay)

    async def _play_in(self, tasks: TaskGroup) -> NoReturn:
        while True:
            tasks.start_soon(self._perform, await self._begun.get())

    async def _perform(self, replay: Replay) -> None:
        try:
            await replay.perform()
        finally:
            self._replays.pop(replay.work.child, None)


@asynccontextmanager
async def open_forks(
    journal: Journal,
    producers: Producers,
    on_appended: Callable[[int], None] = lambda count: None,
    lease: Lease | None = None,
    ledgers: LedgerForks | None = None,
) -> AsyncIterator[Forks]:
    """Forks whose replays end with the block."""
    forks = Forks(journal, producers, on_appended, lease, ledgers)
    async with background(forks.run, forks.renew_leases):
        try:
            yield forks
        finally:
            with anyio.CancelScope(shield=True):
                await forks.stop()


def _work(child: RunId, spec: ForkSpec, producer: Producer) -> ReplaySpec:
    at_seq, n_turns = Seq(spec.at_seq), spec.n_turns
    return ReplaySpec(child=child, at_seq=at_seq, producer=producer, mutation=spec.mutation, n_turns=n_turns)


def check_parent(parent: RunRecord, at_seq: int) -> None:
    """Refuses a reaped run with entries: some stores have deleted them, and brokers read it on none."""
    last_seq = parent.head.last_seq
    if parent.is_reaped and last_seq:
        raise BrokerOverflowError(parent.run_id, max(min(at_seq, last_seq), 1), last_seq + 1)
