"""`tape run`: list, show, fork and compare runs; its other commands are beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.noun_group import NounGroup
from tape.cli.producers import load_producers
from tape.cli.run.lifecycle import call, open_run, unknown_run
from tape.cli.run.listing import list_runs
from tape.cli.run.signal import signal
from tape.cli.run.sweep import sweep

if TYPE_CHECKING:
    from tape.core.diff import Diff, DiffRow
    from tape.core.ids import RunId
    from tape.core.ledger_diff import LedgerRow
    from tape.core.obligation import Obligation
    from tape.core.ports import Store
    from tape.core.run import RunRecord
    from tape.core.run_diff import RunDiff
    from tape.operations.journal_runs import ForkRun


@click.group(cls=NounGroup, no_args_is_help=False)
@shared
def run() -> None:
    """Open and close runs, look at them, fork one, stop one, compare two."""


@run.command()
@click.argument("run_id", metavar="RUN")
@shared
@click.pass_obj
def show(choices: Choices, run_id: str) -> None:
    """Show what is known of RUN."""
    from tape.operations.journal_runs import ShowRun

    found = finish(partial(call, choices, ShowRun(run_id=run_id)))
    if choices.is_json:
        output.write_record(found)
    else:
        summary = {} if found.ledger is None else found.ledger.summary
        facts = ((name.replace("_", " "), str(fact)) for name, fact in summary.items() if fact)
        lines = (*_described(found.record), *facts, *map(_owed, found.obligations))
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
    from tape.core.fork_policy import EffectPolicy
    from tape.operations.journal_runs import ForkRun

    request = ForkRun(
        run_id=run_id,
        at_seq=at_seq,
        mutation_json=mutation or "",
        n_turns=n_turns,
        producer=producer,
        effects=None if effects is None else EffectPolicy(effects),
        reason=reason,
    )
    return finish(partial(_fork, choices, request, producers))


@run.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--limit", type=click.IntRange(1), default=40, show_default=True, help="How many lines of the table.")
@shared
@click.pass_obj
def diff(choices: Choices, one: str, other: str, limit: int) -> None:
    """Show where A and B part, and how they differ from there on.

    With --json a line says where, and a line for each place shows both sides; a server sends only places that differ.
    """
    from tape.cli.run import diff as run_diff, diff_ledgers as run_diff_ledgers

    found, rows = finish(partial(_diff, choices, one, other))
    if choices.is_json:
        run_diff.write_json(found, rows)
        run_diff_ledgers.write_json(found.ledgers)
    else:
        run_diff.write(found, limit)
        run_diff_ledgers.write(found.ledgers, limit)


async def found_run(store: Store, run_id: str) -> RunRecord:
    """The run's record; raises NotFound if there is none."""
    from tape.core.event import check_run_id

    record = await store.runs.find(check_run_id(run_id))
    if record is None:
        raise unknown_run(run_id)
    return record


async def _fork(choices: Choices, request: ForkRun, producers: tuple[str, ...]) -> int:
    from tape import compose
    from tape.core.caller import PLAIN
    from tape.runs.forks import open_forks
    from tape.runs.journal_runs import JournalRuns
    from tape.runs.ledgers import LocalLedgers

    if choices.is_server():
        return await _fork_at_server(choices, request, producers)
    known = load_producers(producers)
    async with (
        choices.open_store(must_exist=True) as store,
        compose.run_journal(store) as journal,
        open_forks(journal, known, ledgers=LocalLedgers(store, journal)) as forks,
    ):
        await found_run(store, request.run_id)
        child = (await JournalRuns(journal, store.runs, None, forks).fork(request, PLAIN)).child_run_id
        _write_child(choices, child, request.run_id, request.at_seq)
        replay = await forks.settled(child)
    if replay is not None and replay.outcome == "failed":
        output.note(f"the producer failed: {output.escape(replay.reason or '')}")
        return 1
    return 0


async def _fork_at_server(choices: Choices, request: ForkRun, producers: tuple[str, ...]) -> int:
    """The server plays a producer of its own, and does not say here how that ends."""
    from tape.core.errors import UsageError

    if producers:
        raise UsageError("--producers are played beside the store; give the URL of the server's store")
    child = (await call(choices, request)).child_run_id
    _write_child(choices, child, request.run_id, request.at_seq)
    return 0


def _write_child(choices: Choices, child: RunId, parent: str, at_seq: int) -> None:
    """Prints the child at once, so that a reader can follow it."""
    if choices.is_json:
        output.write_json({"child_run_id": child, "parent_run_id": parent, "at_seq": at_seq})
    else:
        output.write(f"{output.paint(child, 'bold')}  forked from {output.escape(parent)} at seq {at_seq}")
    output.flush()


async def _diff(choices: Choices, one: str, other: str) -> tuple[RunDiff, Sequence[DiffRow]]:
    """How two runs differ, and the places to list: all of them, or those that a server sends."""
    from tape.core.run_diff import whole_diff
    from tape.operations.fields import MAX_LIMIT
    from tape.operations.journal_runs import DiffRuns

    if choices.is_server():
        found = await call(choices, DiffRuns(run_id=one, other=other, limit=MAX_LIMIT))
        return found, found.entries
    compared, ledgers = await _compared(choices, one, other)
    return whole_diff(compared, ledgers), compared.rows


async def _compared(choices: Choices, one: str, other: str) -> tuple[Diff, Sequence[LedgerRow]]:
    from tape import compose
    from tape.core.errors import RunNotFound
    from tape.runs.journal_runs import JournalRuns
    from tape.runs.ledgers import LocalLedgers

    async with choices.open_store(must_exist=True) as store, compose.run_journal(store) as journal:
        ledgers = LocalLedgers(store, journal) if choices.has_ledgers() else None
        try:
            return await JournalRuns(journal, store.runs, ledgers).compare(one, other)
        except RunNotFound as error:
            raise unknown_run(error.run_id) from error
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


run.add_command(open_run)
run.add_command(list_runs)
run.add_command(signal)
run.add_command(sweep)
