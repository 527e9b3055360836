"""Forks as a service: a child begins, and a producer goes on in it if one is asked for."""

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
from tape.core.errors import BrokerOverflowError, LimitReached, TapeError, Unavailable, UsageError, quoted
from tape.core.event import Entry
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.producer import MOST_TURNS, TURNS, Producer
from tape.core.run import RunRecord
from tape.runs.producers import Producers
from tape.runs.replay import Replay, Work
from tape.telemetry import log

AT_ONCE: Final = 16  # each has a thread
MOST: Final = 256
LEAVE_S: Final = 2.0
LEAVING: Final = "whoever replayed it is leaving"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSpec:
    """What a fork is to be: where it leaves its parent, what is changed for it, and who goes on in it, if anybody."""

    at_seq: int
    mutation: JsonValue = None
    n_turns: int = TURNS
    producer: str | None = None
    effects: EffectPolicy | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if type(self.n_turns) is not int or not 0 <= self.n_turns <= MOST_TURNS:
            raise UsageError(f"n_turns is 0 to {MOST_TURNS}, not {quoted(self.n_turns)}")


class LedgerForks(Protocol):
    """Begins a child together with the ledgers that it inherits."""

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
    """Begins children and has their producers play, so many at once; the others wait for their turn.

    Every child that is to be played is leased: should this process die, any other one closes it.
    """

    def __init__(
        self,
        journal: Journal,
        producers: Producers | None = None,
        appended: Callable[[int], None] = lambda count: None,
        lease: Lease | None = None,
        ledgers: LedgerForks | None = None,
    ) -> None:
        self._journal = journal
        self._ledgers = ledgers
        self._producers = producers or Producers()
        self._appended = appended
        self._lease = lease or Lease()
        self._holder = os.urandom(16).hex()
        self._expected = 0
        self._threads = anyio.CapacityLimiter(AT_ONCE)
        self._replays: dict[RunId, Replay] = {}
        self._begun: asyncio.Queue[Replay] = asyncio.Queue()
        self._is_leaving = False

    async def run(self) -> NoReturn:
        """Plays whatever was begun; it ends with the block it runs in."""
        while True:
            async with anyio.create_task_group() as tasks:
                await self._play_in(tasks)

    async def keep(self) -> NoReturn:
        """Says every so often that who plays here lives; what fails is tried again."""
        while True:
            await anyio.sleep(self._lease.renew.total_seconds())
            if self._replays:
                await self._hold(list(self._replays))

    async def fork(self, parent: RunRecord, spec: ForkSpec) -> RunId:
        """The child, which can be read at once; what cannot be replayed is refused before there is one."""
        check_parent(parent, spec.at_seq)
        if spec.producer is None:
            return await self._child(parent.run_id, spec)
        producer = self._producers.find(spec.producer)
        producer.check_mutation(spec.mutation)
        with self._room():
            child = await self._child(parent.run_id, spec)
            await self._hold([child])
            self._begin(_work(child, spec, producer))
        if self._is_leaving:
            await self.cancel(child, LEAVING)
        return child

    async def cancel(self, run_id: RunId, reason: str = "") -> Seq:
        """Stops whoever goes on in an open run, here or elsewhere: the run says that it was cancelled, and ends."""
        if (replay := self._replays.get(run_id)) is not None:
            replay.stop()
        return await self._journal.end_run(run_id, "cancelled", reason)

    async def settled(self, run_id: RunId) -> Replay | None:
        """A run's replay when it is over; None if it has none under way."""
        replay = self._replays.get(run_id)
        if replay is not None:
            await replay.over.wait()
        return replay

    async def leave(self) -> None:
        """Cancels what is under way, and begins nothing more."""
        self._is_leaving = True
        with anyio.move_on_after(LEAVE_S):
            async with anyio.create_task_group() as tasks:
                for run_id in list(self._replays):
                    tasks.start_soon(self._drop, run_id)

    async def _drop(self, run_id: RunId) -> None:
        try:
            await self.cancel(run_id, LEAVING)
        except TapeError as error:
            log.warning("run.not_ended", run_id=run_id, error=type(error).__name__)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Room for one more, which is kept while its child is made."""
        if self._is_leaving:
            raise Unavailable("the server is leaving; come back in a moment")
        if len(self._replays) + self._expected >= MOST:
            raise LimitReached(f"{MOST:,} replays are under way already; come back later")
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
        self._appended(len(entries))
        return entries[0].run_id

    async def _hold(self, children: Sequence[RunId]) -> None:
        """Renews the leases of children; who plays in one that has ended meanwhile is told."""
        try:
            held = set(await self._journal.lease(children, self._holder))
        except Exception as error:  # noqa: BLE001 - a lease lasts for many renewals, so one may fail
            log.warning("replay.not_leased", count=len(children), error=type(error).__name__)
            return
        for child in children:
            if child not in held and (replay := self._replays.get(child)) is not None:
                replay.lose()

    def _begin(self, work: Work) -> None:
        replay = Replay(journal=self._journal, work=work, threads=self._threads, appended=self._appended)
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
    appended: Callable[[int], None] = lambda count: None,
    lease: Lease | None = None,
    ledgers: LedgerForks | None = None,
) -> AsyncIterator[Forks]:
    """Forks whose replays end with the block."""
    forks = Forks(journal, producers, appended, lease, ledgers)
    async with background(forks.run, forks.keep):
        try:
            yield forks
        finally:
            with anyio.CancelScope(shield=True):
                await forks.leave()


def _work(child: RunId, spec: ForkSpec, producer: Producer) -> Work:
    at_seq, n_turns = Seq(spec.at_seq), spec.n_turns
    return Work(child=child, at_seq=at_seq, producer=producer, mutation=spec.mutation, n_turns=n_turns)


def check_parent(parent: RunRecord, at_seq: int) -> None:
    """Refuses a run that was let go: on some stores its entries are gone, and on none does a broker read them."""
    if parent.is_reaped:
        last_seq = parent.head.last_seq
        raise BrokerOverflowError(parent.run_id, max(min(at_seq, last_seq), 1), last_seq + 1)
