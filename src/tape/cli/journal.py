"""`tape journal`: the journal as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, run, shared
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from tape.core.ports import AuditPage, Bounds, Fault, Store
    from tape.core.term import Term
    from tape.lake.archive import ComparedPositions

STAGES: Final = {"entries": "entries in order", "runs": "runs", "file": "the file itself"}


@click.group(no_args_is_help=False)
@shared
def journal() -> None:
    """Look after the journal as a whole."""


@journal.command()
@shared
@click.pass_obj
def verify(choices: Choices) -> int:
    """Check positions, runs, checksums and the file, and name every bad row.

    Ends with 0 when all is well and with 8 when something is not.
    """
    return run(partial(_verify, choices))


async def _verify(choices: Choices) -> int:
    from tape.core.errors import Corrupt

    async with choices.open_store(must_exist=True) as store:
        faults = await audit(store, write_fault_json if choices.is_json else write_fault)
        bounds = await store.journal.bounds()
        terms = await store.journal.terms()
    _sum_up(bounds, terms, faults, is_json=choices.is_json)
    return Corrupt.exit_code if faults else 0


@journal.command()
@click.option(
    "--keep", type=DurationType(), required=True, help="How much of the newest stays in the journal: 12h, 7d."
)
@shared
@in_lake
@click.pass_obj
def archive(choices: Choices, keep: timedelta) -> None:
    """Let go of what is old and in the lake; whoever reads from before that reads on in the lake.

    Everything is compared, byte for byte, before anything is deleted.
    """
    run(partial(_archive, choices, keep))


async def _archive(choices: Choices, keep: timedelta) -> None:
    from tape.lake.lazy_reader import TABLE, check_installed
    from tape.lake.store_option import check_durable

    check_installed()
    from tape.lake.archive import archive as let_go
    from tape.lake.log import DeltaLog

    check_durable(choices.location()[0])
    before_ms = int(time() * 1000) - keep // timedelta(milliseconds=1)
    async with choices.open_store(must_exist=True) as store:
        before = await store.journal.bounds()
        bounds = await let_go(store, DeltaLog(choices.lake_folder() / TABLE), before_ms, _show_compared)
    _sum_up_archive(before, bounds, is_json=choices.is_json)


def _show_compared(compared: ComparedPositions) -> None:
    output.progress(f"comparing with the lake: {compared.through:,} of {compared.last:,} …")


def _sum_up_archive(before: Bounds, bounds: Bounds, *, is_json: bool) -> None:
    gone = bounds.floor - before.floor
    if is_json:
        output.write_json({"archived": gone, "floor": bounds.floor, "head": bounds.head})
        return
    entries = output.count(gone, "entry", "entries")
    output.write(f"{output.paint('ok', 'green', 'bold')}  {entries} archived; the journal begins at {bounds.floor:,}")


async def audit(store: Store, on_fault: Callable[[Fault], None]) -> int:
    """Checks everything, reports each fault as it is found, and returns how many there are."""
    count = 0
    async with aclosing(store.audit.pages()) as pages:
        async for page in pages:
            for fault in page.faults:
                on_fault(fault)
            count += len(page.faults)
            _show_progress(page)
    return count


def _show_progress(page: AuditPage) -> None:
    share = f" {page.done / page.total:4.0%} of {page.total:,}" if page.total > 1 else ""
    output.progress(f"checking {STAGES[page.stage]}{share} …")


def write_fault_json(fault: Fault) -> None:
    output.write_json(fault._asdict())


def write_fault(fault: Fault) -> None:
    names = (("entry", fault.global_seq), ("run", fault.run_id), ("seq", fault.seq))
    place = "  ".join(f"{name} {output.escape(str(value))}" for name, value in names if value is not None)
    reason = output.escape(fault.reason)
    output.write(f"{output.paint('fault', 'red')}  {output.paint(place or 'file', 'bold')}  {reason}")


def _sum_up(bounds: Bounds, terms: Sequence[Term], faults: int, *, is_json: bool) -> None:
    if is_json:
        facts = [{"epoch": term.epoch, "first": term.first} for term in terms]
        output.write_json({"floor": bounds.floor, "head": bounds.head, "faults": faults, "terms": facts})
        return
    for term in terms[1:]:
        output.write(
            f"{output.paint('term', 'yellow')}  {term.epoch} began at {term.first:,}, when the server was promoted"
        )
    entries = output.count(bounds.head - bounds.floor + 1, "entry", "entries")
    what = f"{entries}, {bounds.floor} to {bounds.head}" if bounds.head >= bounds.floor else "no entries"
    if faults:
        output.write(f"{output.paint('damaged', 'red', 'bold')}  {what}: {output.count(faults, 'fault', 'faults')}")
    else:
        output.write(f"{output.paint('ok', 'green', 'bold')}  {what}: dense, in order, every byte as it was written")
