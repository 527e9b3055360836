"""The second part of the demo: a small world runs, is forked with a mutation, and both are compared."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from tape.bus.journal import Journal
from tape.cli import output
from tape.cli.demo.arena.producer import arena
from tape.cli.demo.readers import payload_field
from tape.cli.demo.report import Check
from tape.cli.producers import load_producers
from tape.cli.run import diff as run_diff
from tape.core.diff import Diff
from tape.core.errors import RunNotFound
from tape.core.event import Entry, Event
from tape.core.ids import RunId
from tape.core.ports import RunDirectory
from tape.core.run import RunMeta
from tape.core.run_diff import whole_diff
from tape.runs.forks import ForkSpec, open_forks

TURNS: Final = 6
FORK_TURN: Final = 3
MUTATION: Final = {"food": 0}
LINES: Final = 9


class ForkResult(NamedTuple):
    """A run, its fork, and their differences."""

    diff: Diff
    checks: tuple[Check, ...]


class _MemorySink(list[Event]):
    """A sink that keeps its events."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.emit = self.append


async def play(journal: Journal, runs: RunDirectory, prefix: str) -> ForkResult:
    """Plays a world, forks it in its third turn with empty stocks, and plays the fork to the same turn."""
    run_id = f"{prefix}arena"
    parent = await _play(journal, run_id)
    at_seq = [entry.seq for entry in parent if entry.type == "turn_start"][FORK_TURN - 1] - 1
    order = ForkSpec(
        at_seq=at_seq, mutation={**MUTATION}, producer="arena", n_turns=TURNS - FORK_TURN + 1, reason="a bad harvest"
    )
    async with open_forks(journal, load_producers()) as forks:
        record = await runs.find(RunId(run_id))
        if record is None:
            raise RunNotFound(RunId(run_id))
        child_id = await forks.fork(record, order)
        await forks.settled(child_id)
    child, after = await _read(journal, child_id), await _read(journal, run_id)
    return ForkResult(await journal.diff(run_id, child_id), _checks(parent, after, child, at_seq))


def write(fork: ForkResult) -> None:
    """Prints both runs side by side."""
    output.write()
    output.write(output.paint("A run, and what if its stores had been empty in the third turn:", "bold"))
    run_diff.write(whole_diff(fork.diff), LINES, "… and more; tape run diff shows it all")


async def _play(journal: Journal, run_id: str) -> list[Entry]:
    sink = _MemorySink(run_id)
    arena((), None, TURNS, sink)
    await journal.open_run(run_id, RunMeta(label="a little world"))
    await journal.append(sink)
    await journal.close_run(run_id)
    return await _read(journal, run_id)


async def _read(journal: Journal, run_id: str) -> list[Entry]:
    return [entry async for entry in journal.stream(run_id=run_id, follow=False)]


def _checks(before: Sequence[Entry], after: Sequence[Entry], child: Sequence[Entry], at_seq: int) -> tuple[Check, ...]:
    is_inherited = list(child[:at_seq]) == list(before[:at_seq]) and child[at_seq].type == "fork"
    is_kept = is_inherited and _hash(before) == _hash(after)
    kept = f"{at_seq} entries inherited, {len(child) - at_seq} its own; its parent is as it was"
    one, other = _prosperity(before), _prosperity(child)
    is_other = bool(one) and len(one) == len(other) and one != other
    ends = f"prosperity {_listed(other)} instead of {_listed(one)} after turn {TURNS}"
    return Check("fork", is_kept, kept if is_kept else "not what a fork is"), Check("what if", is_other, ends)


def _hash(entries: Sequence[Entry]) -> str:
    return sha256(repr([tuple(entry) for entry in entries]).encode()).hexdigest()


def _prosperity(entries: Sequence[Entry]) -> list[object]:
    """Every settlement's prosperity at the end."""
    metrics = (entry for entry in entries if entry.type == "metric")
    return [payload_field(entry, "value") for entry in metrics if payload_field(entry, "turn_num") == TURNS]


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
