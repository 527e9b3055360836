"""Any interleaving of appends, forks, reads, cancellations, closes and trims gives every reader 1…n, once, in order, or
a gap that names what is missing.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup
from hypothesis import given, strategies as st

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.errors import BrokerOverflowError, Conflict, RunClosed, RunNotFound, UsageError
from tape.core.event import Event
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Store
from tests.deadlines import DEADLINE_S

RUNS = ("a", "b")
CHILDREN = ("c", "d")
TAIL = 8

APPEND = st.tuples(st.just("append"), st.sampled_from(RUNS), st.integers(1, 12))
FORK = st.tuples(st.just("fork"), st.sampled_from(CHILDREN), st.integers(0, 99))
READ = st.tuples(st.just("read"), st.sampled_from((*RUNS, *CHILDREN, "")), st.integers(0, 5))
CANCEL = st.tuples(st.just("cancel"), st.just(""), st.integers(0, 9))
CLOSE = st.tuples(st.just("close"), st.sampled_from((*RUNS, *CHILDREN)), st.just(0))
TRIM = st.tuples(st.just("trim"), st.just(""), st.integers(0, 15))
TRIM_RUN = st.tuples(st.just("trim_run"), st.sampled_from((*RUNS, *CHILDREN)), st.integers(0, 10))
PAUSE = st.tuples(st.just("pause"), st.just(""), st.integers(1, 6))
STEPS = st.lists(st.one_of(APPEND, APPEND, FORK, READ, CANCEL, CLOSE, TRIM, TRIM_RUN, PAUSE, PAUSE), max_size=25)


@dataclass
class Reader:
    """A reader of one run, or of all ("" ), that continues after a gap at the first retained entry."""

    run_id: str
    laziness: int
    pattern: str | None = None
    next: int = 1
    has_ended: bool = False
    faults: list[str] = field(default_factory=list)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self, journal: Journal) -> None:
        with self.scope:
            while not self.has_ended:
                try:
                    await self._read(journal)
                except BrokerOverflowError as gap:
                    self._note(gap.requested_seq == self.next < gap.available_from, f"{gap} after {self.next - 1}")
                    self.next = gap.available_from

    async def _read(self, journal: Journal) -> None:
        stream = (
            journal.stream(run_id=self.run_id, from_seq=self.next)
            if self.run_id
            else journal.stream(from_global_seq=self.next - 1, subject=self.pattern)
        )
        async for entry in stream:
            place = entry.seq if self.run_id else entry.global_seq
            self._note(place == self.next, f"{place} instead of {self.next}")
            self.next = place + 1
            for _ in range(self.laziness):
                await anyio.lowlevel.checkpoint()
        self.has_ended = True

    def _note(self, is_right: bool, fault: str) -> None:
        if not is_right:
            self.faults.append(fault)


class World:
    """Two journals over one store, and the operations on them."""

    def __init__(self, store: Store, journals: Sequence[Journal], tasks: TaskGroup) -> None:
        self.store, self.journals, self.tasks = store, journals, tasks
        self.readers: list[Reader] = []
        self.ends: dict[str, set[int]] = {run: set() for run in (*RUNS, *CHILDREN)}
        self.publishing = 0

    async def do(self, verb: str, run_id: str, n: int) -> None:
        step: Callable[[str, int], object] = getattr(self, f"_{verb}")
        await step(run_id, n)  # type: ignore[misc]

    async def _append(self, run_id: str, n: int) -> None:
        self.publishing += 1
        self.tasks.start_soon(self._publish, self.journals[n % 2], run_id, n)

    async def _publish(self, journal: Journal, run_id: str, n: int) -> None:
        """Every third event has a key and is repeated; every fifth append is cancelled and may be stored or not."""
        events = [Event(run_id=run_id, payload=n)] * n
        key = f"{run_id}.{n}" if n % 3 == 0 else None
        with anyio.CancelScope() as scope:
            if n % 5 == 0:
                scope.cancel()
            for _ in range(2 if key else 1):
                await journal.append(events, key=key, open=True)
        self.publishing -= 1

    async def _fork(self, run_id: str, n: int) -> None:
        """Forks a run, unless the child exists or its history is gone, and publishes one more event in it."""
        heads = await self.store.runs.heads([RunId(run) for run in (*RUNS, *CHILDREN)])
        if heads:
            parent = sorted(heads)[n % len(heads)]
            with suppress(Conflict, RunClosed, UsageError, BrokerOverflowError):
                await self.journals[n % 2].fork(parent, n % (heads[parent].last_seq + 1), run_id=run_id, mutation=n)
                await self.journals[1].append(Event(run_id=run_id, payload=n))

    async def _read(self, run_id: str, n: int) -> None:
        reader = Reader(run_id, laziness=n, pattern="/tape/**" if n % 2 else None)
        self.readers.append(reader)
        self.tasks.start_soon(reader.run, self.journals[n // 2 % 2])

    async def _cancel(self, _: str, n: int) -> None:
        if self.readers:
            self.readers[n % len(self.readers)].scope.cancel()

    async def _close(self, run_id: str, _: int) -> None:
        try:
            self.ends[run_id].add(await self.journals[0].close_run(run_id))
        except RunNotFound:
            return

    async def _trim(self, _: str, n: int) -> None:
        await self.store.retention.trim(GlobalSeq(min(n, await self.journals[0].head())))

    async def _trim_run(self, run_id: str, n: int) -> None:
        if await self.store.runs.heads([RunId(run_id)]):
            await self.store.retention.trim_run(RunId(run_id), keep=n)

    async def _pause(self, _: str, n: int) -> None:
        for _round in range(n):
            await anyio.lowlevel.checkpoint()

    async def finish(self) -> None:
        """Every reader reaches the end of its run or of the journal."""
        with anyio.fail_after(DEADLINE_S):
            while self.publishing:
                await anyio.lowlevel.checkpoint()
            for run_id in (*RUNS, *CHILDREN):
                await self.journals[1].append(Event(run_id=run_id, payload=0), open=True)
                await self._close(run_id, 0)
            head = await self.journals[0].head()
            waiting = [reader for reader in self.readers if not reader.scope.cancel_called]
            while not all(reader.has_ended or (not reader.run_id and reader.next > head) for reader in waiting):
                await anyio.lowlevel.checkpoint()
        self.tasks.cancel_scope.cancel()

    def faults(self) -> list[str]:
        found = [fault for reader in self.readers for fault in reader.faults]
        ended = [reader for reader in self.readers if reader.has_ended]
        return found + [f"{r.run_id} ended at {r.next - 1}" for r in ended if r.next - 1 not in self.ends[r.run_id]]


async def play(keep: int, steps: Sequence[tuple[str, str, int]]) -> list[str]:
    async with open_store(f"memory://?keep={keep}") as store:
        return await play_on(store, store, steps)


async def play_on(store: Store, second: Store, steps: Sequence[tuple[str, str, int]]) -> list[str]:
    """The errors of all readers of two nodes; there must be none."""
    async with run_journal(store, tail_entries=TAIL) as one, run_journal(second, tail_entries=TAIL) as other:
        async with anyio.create_task_group() as tasks:
            world = World(store, (one, other), tasks)
            for step in steps:
                await world.do(*step)
            await world.finish()
        return world.faults()


@given(keep=st.sampled_from([3, 20, 10_000]), steps=STEPS)
def test_every_reader_gets_everything_once_in_order_or_a_gap_with_its_bounds(
    keep: int, steps: list[tuple[str, str, int]]
) -> None:
    assert anyio.run(play, keep, steps) == []
