"""`tape run`: list, show, fork, cancel and compare runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.producers import load_producers
from tape.cli.run.listing import facts_of, list_runs
from tape.cli.run.signal import signal
from tape.cli.run.sweep import sweep

if TYPE_CHECKING:
    from tape.core.diff import Diff
    from tape.core.errors import NotFound
    from tape.core.ids import RunId
    from tape.core.ledger_diff import LedgerRow
    from tape.core.obligation import Obligation
    from tape.core.ports import Store
    from tape.core.run import RunRecord
    from tape.core.run_state import RunState
    from tape.runs.forks import ForkSpec


@click.group(no_args_is_help=False)
@shared
def run() -> None:
    """Look at runs, fork one, stop one, compare two."""


@run.command()
@click.argument("run_id", metavar="RUN")
@shared
@click.pass_obj
def show(choices: Choices, run_id: str) -> None:
    """Show what is known of RUN."""
    record, state, unmet = finish(partial(_find, choices, run_id))
    summary = {} if state is None else state.summary
    if choices.is_json:
        owed = {"obligations": [each.summary for each in unmet]}
        output.write_json({**facts_of(record), **({"ledger": {**summary, **owed}} if summary else {})})
    else:
        facts = ((name.replace("_", " "), str(fact)) for name, fact in summary.items() if fact)
        lines = (*_described(record), *facts, *map(_owed, unmet))
        output.table((output.paint(name, "bold"), output.escape(text)) for name, text in lines)


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--at", "at_seq", metavar="SEQ", type=int, required=True, help="The last seq that is inherited.")
@click.option("--mutation", metavar="JSON", help="What is changed for the fork.")
@click.option("--turns", "n_turns", type=int, default=10, show_default=True, help="For how long a producer goes on.")
@click.option("--producer", metavar="NAME", help="Who goes on in it, here and now: arena, or one of --producers.")
@click.option("--producers", multiple=True, metavar="MODULE[:NAME]", help="Load producers; may be repeated.")
@click.option("--effects", type=click.Choice(["replay", "stub", "live"]), help="What becomes of effects in the fork.")
@click.option("--reason", help="Why; the fork's first entry says it.")
@shared
@click.pass_obj
def fork(
    choices: Choices,
    run_id: str,
    at_seq: int,
    mutation: str | None,
    n_turns: int,
    producer: str | None,
    producers: tuple[str, ...],
    effects: str | None,
    reason: str | None,
) -> int:
    """Begin a run that is RUN up to a seq and then its own.

    Without --producer it stays open for whoever goes on in it. With one it is played to its end and closed;
    interrupted, it ends as cancelled. With --effects it inherits RUN's ledgers, and waits for an agent of its app.
    """
    from tape.core import codec
    from tape.core.fork_policy import EffectPolicy
    from tape.runs.forks import ForkSpec

    changed = None if mutation is None else codec.decode(mutation)
    policy = None if effects is None else EffectPolicy(effects)
    order = ForkSpec(at_seq=at_seq, mutation=changed, n_turns=n_turns, producer=producer, effects=policy, reason=reason)
    return finish(partial(_fork, choices, run_id, order, producers))


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="it was asked for", show_default=True, help="Why; its last entry says it.")
@shared
@click.pass_obj
def cancel(choices: Choices, run_id: str, reason: str) -> None:
    """Close RUN, with an entry that says so, and thereby stop whoever goes on in it, wherever that is."""
    last_seq = finish(partial(_cancel, choices, run_id, reason))
    if choices.is_json:
        output.write_json({"run_id": run_id, "status": "complete", "last_seq": last_seq})
    else:
        output.write(f"{output.escape(run_id)}  closed at seq {last_seq}")


@run.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="How many lines of the table.")
@shared
@click.pass_obj
def diff(choices: Choices, one: str, other: str, limit: int) -> None:
    """Show where A and B part, and how they differ from there on.

    With --json a line says where, and a line for each place shows both sides.
    """
    from tape.cli.run import diff as run_diff, diff_ledgers as run_diff_ledgers

    found, ledgers = finish(partial(_diff, choices, one, other))
    if choices.is_json:
        run_diff.write_json(found)
        run_diff_ledgers.write_json(ledgers)
    else:
        run_diff.write(found, limit)
        run_diff_ledgers.write(ledgers, limit)


async def _find(choices: Choices, run_id: str) -> tuple[RunRecord, RunState | None, Sequence[Obligation]]:
    from tape import compose
    from tape.runs.ledgers import Ledgers
    from tape.runs.lifecycle import RUNS

    async with choices.open_store(must_exist=True) as store, compose.run_journal(store) as journal:
        record = await found_run(store, run_id)
        if not choices.has_ledgers():
            return record, None, []
        state = RUNS.find(await store.cells.snapshot((RUNS.at(run_id),)), run_id)
        return record, state, await Ledgers(store, journal).obligations.unmet(run_id)
    raise AssertionError("unreachable")


async def found_run(store: Store, run_id: str) -> RunRecord:
    """The run's record; raises NotFound if there is none."""
    from tape.core.event import check_run_id

    record = await store.runs.find(check_run_id(run_id))
    if record is None:
        raise _unknown(run_id)
    return record


def _unknown(run_id: str) -> NotFound:
    from tape.core.errors import NotFound

    return NotFound(f"there is no run {run_id!r}; tape run ls lists those there are")


async def _fork(choices: Choices, run_id: str, order: ForkSpec, producers: tuple[str, ...]) -> int:
    from tape import compose
    from tape.runs.forks import open_forks
    from tape.runs.ledgers import Ledgers

    known = load_producers(producers)
    async with (
        choices.open_store(must_exist=True) as store,
        compose.run_journal(store) as journal,
        open_forks(journal, known, ledgers=Ledgers(store, journal)) as forks,
    ):
        child = await forks.fork(await found_run(store, run_id), order)
        _write_child(choices, child, run_id, order.at_seq)
        replay = await forks.settled(child)
    if replay is not None and replay.outcome == "failed":
        output.note(f"the producer failed: {output.escape(replay.reason or '')}")
        return 1
    return 0


def _write_child(choices: Choices, child: RunId, parent: str, at_seq: int) -> None:
    """Prints the child at once, so that a reader can follow it."""
    if choices.is_json:
        output.write_json({"child_run_id": child, "parent_run_id": parent, "at_seq": at_seq})
    else:
        output.write(f"{output.paint(child, 'bold')}  forked from {output.escape(parent)} at seq {at_seq}")
    output.flush()


async def _cancel(choices: Choices, run_id: str, reason: str) -> int:
    from tape import compose
    from tape.core.errors import RunNotFound
    from tape.runs.cancellation import cancel
    from tape.runs.ledgers import Ledgers

    async with choices.open_store(must_exist=True) as store, compose.run_journal(store) as journal:
        try:
            return await cancel(journal, Ledgers(store, journal) if choices.has_ledgers() else None, run_id, reason)
        except RunNotFound as error:
            raise _unknown(error.run_id) from error
    raise AssertionError("unreachable")


async def _diff(choices: Choices, one: str, other: str) -> tuple[Diff, tuple[LedgerRow, ...]]:
    from tape import compose
    from tape.core.errors import RunNotFound
    from tape.core.ledger_diff import compare_actions
    from tape.operations.run_actions import read_actions
    from tape.runs.ledgers import Ledgers

    async with choices.open_store(must_exist=True) as store, compose.run_journal(store) as journal:
        try:
            found = await journal.diff(one, other)
        except RunNotFound as error:
            raise _unknown(error.run_id) from error
        if not choices.has_ledgers():
            return found, ()
        ledgers = Ledgers(store, journal)
        return found, compare_actions(await read_actions(ledgers, found.one), await read_actions(ledgers, found.other))
    raise AssertionError("unreachable")


def _owed(obligation: Obligation) -> tuple[str, str]:
    app = f" of app {obligation.app}" if obligation.app else ""
    tried = output.count(obligation.attempts, "attempt", "attempts")
    why = f": {obligation.last_error}" if obligation.last_error else ""
    return "owes", f"{obligation.compensator}{app}, {obligation.status.value} after {tried}{why}"


def _described(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "run", record.run_id
    yield "status", f"{record.status.value}, reaped" if record.is_reaped else record.status.value
    yield "events", f"{record.head.last_seq:,}, from {record.head.floor} on"
    for name in ("label", "started_at", "app", "user", "session"):
        if (text := getattr(record.meta, name)) is not None:
            yield name.replace("_", " "), text
    for ancestor in record.head.lineage:
        yield "inherits", f"{ancestor.run_id} through seq {ancestor.through_seq}"


run.add_command(list_runs)
run.add_command(signal)
run.add_command(sweep)
