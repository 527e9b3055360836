"""Reading a fork's segments equals reading a copy, and so does streaming it from a store."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
from hypothesis import given, strategies as st

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core import fork
from tape.core.event import Entry, Event
from tape.core.fork import Lineage
from tape.core.ids import RunId

ROOT = RunId("run-0")


@dataclass
class World:
    """Each run twice: as a copy, and as the entries that it owns."""

    copies: dict[RunId, list[str]] = field(default_factory=lambda: {ROOT: []})
    owned: dict[RunId, dict[int, str]] = field(default_factory=lambda: {ROOT: {}})
    lineages: dict[RunId, Lineage] = field(default_factory=lambda: {ROOT: ()})

    def append(self, run_id: RunId, count: int) -> None:
        for _ in range(count):
            seq = len(self.copies[run_id]) + 1
            self.copies[run_id].append(f"{run_id}@{seq}")
            self.owned[run_id][seq] = f"{run_id}@{seq}"

    def fork(self, parent: RunId, at_seq: int) -> None:
        child = RunId(f"run-{len(self.copies)}")
        self.copies[child] = self.copies[parent][:at_seq]
        self.owned[child] = {}
        self.lineages[child] = fork.lineage_of_child(self.lineages[parent], parent, at_seq)

    def read(self, run_id: RunId, from_seq: int) -> list[str]:
        found = []
        for owner, first, last in fork.segments(self.lineages[run_id], run_id, from_seq):
            found += [self.owned[owner][seq] for seq in sorted(self.owned[owner]) if first <= seq <= (last or seq)]
        return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World()
    for _ in range(draw(st.integers(0, 12))):
        run_id = draw(st.sampled_from(sorted(world.copies)))
        if draw(st.booleans()):
            world.append(run_id, draw(st.integers(1, 4)))
        else:
            world.fork(run_id, draw(st.integers(0, len(world.copies[run_id]))))
    return world


places = worlds().flatmap(lambda world: st.tuples(st.just(world), st.sampled_from(sorted(world.copies))))


@given(places, st.integers(1, 20))
def test_a_fork_reads_like_a_copy_from_any_seq(place: tuple[World, RunId], from_seq: int) -> None:
    world, run_id = place

    assert world.read(run_id, from_seq) == world.copies[run_id][from_seq - 1 :]


@given(places)
def test_a_lineage_rises_and_names_nobody_twice(place: tuple[World, RunId]) -> None:
    world, run_id = place

    bounds = [0, *(ancestor.through_seq for ancestor in world.lineages[run_id])]
    names = [*(ancestor.run_id for ancestor in world.lineages[run_id]), run_id]

    assert bounds == sorted(set(bounds))
    assert len(names) == len(set(names))


@given(places, st.integers(1, 20))
def test_segments_follow_each_other_without_gap_or_overlap(place: tuple[World, RunId], from_seq: int) -> None:
    world, run_id = place

    *inherited, own = fork.segments(world.lineages[run_id], run_id, from_seq)

    ends = [from_seq - 1, *(segment.last_seq for segment in inherited)]
    assert [segment.first_seq - 1 for segment in (*inherited, own)] == ends
    assert (own.run_id, own.last_seq) == (run_id, None)


STEPS = st.lists(st.tuples(st.sampled_from(["append", "fork", "fork"]), st.integers(0, 99), st.integers(0, 99)))


class Copies:
    """A tree of runs in a journal, and a copy of what each must contain."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.runs: dict[str, list[Entry]] = {}

    async def do(self, verb: str, which: int, n: int) -> None:
        if not self.runs or (verb == "append" and which % 7 == 0):
            run_id, kept = f"root-{len(self.runs)}", list[Entry]()
        else:
            run_id = sorted(self.runs)[which % len(self.runs)]
            kept = self.runs[run_id]
        if verb == "fork" and self.runs:
            at_seq, child = n % (len(kept) + 1), f"child-{len(self.runs)}"
            self.runs[child] = kept[:at_seq] + await self._journal.fork(run_id, at_seq, run_id=child)
        else:
            events = [Event(run_id=run_id, payload=n)] * (n % 5 + 1)
            self.runs[run_id] = kept + await self._journal.append(events, open=True)

    async def differences(self, from_seq: int) -> list[str]:
        return [run_id for run_id, kept in self.runs.items() if await self._read(run_id, from_seq) != kept[from_seq:]]

    async def _read(self, run_id: str, from_seq: int) -> list[Entry]:
        first = min(from_seq, len(self.runs[run_id])) + 1
        async with aclosing(self._journal.stream(run_id=run_id, from_seq=first, follow=False)) as stream:
            return [entry async for entry in stream]


async def grow(steps: Sequence[tuple[str, int, int]], from_seq: int) -> list[str]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        copies = Copies(journal)
        for transition in steps:
            await copies.do(*transition)
        return await copies.differences(from_seq)


@given(STEPS, st.integers(0, 12))
def test_any_tree_of_forks_streams_like_copies(steps: list[tuple[str, int, int]], from_seq: int) -> None:
    assert anyio.run(grow, steps, from_seq) == []
