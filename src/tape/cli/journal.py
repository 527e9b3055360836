"""`tape journal`: the journal as a whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from tape.core.ports import AuditPage, Bounds, Fault, Store

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

    choices.check_exists()
    async with choices.open_store() as store:
        faults = await audit(store, _tell_json if choices.is_json else _tell)
        bounds = await store.journal.bounds()
    _sum_up(bounds, faults, is_json=choices.is_json)
    return Corrupt.exit_code if faults else 0


async def audit(store: Store, tell: Callable[[Fault], None]) -> int:
    """Looks at everything, tells each fault as it is found, and says how many there are."""
    count = 0
    async with aclosing(store.audit.pages()) as pages:
        async for page in pages:
            for fault in page.faults:
                tell(fault)
            count += len(page.faults)
            _show_progress(page)
    return count


def _show_progress(page: AuditPage) -> None:
    share = f" {page.done / page.total:4.0%} of {page.total:,}" if page.total > 1 else ""
    output.progress(f"checking {STAGES[page.stage]}{share} …")


def _tell_json(fault: Fault) -> None:
    output.say_json(fault._asdict())


def _tell(fault: Fault) -> None:
    names = (("entry", fault.global_seq), ("run", fault.run_id), ("seq", fault.seq))
    place = "  ".join(f"{name} {output.escape(str(value))}" for name, value in names if value is not None)
    reason = output.escape(fault.reason)
    output.say(f"{output.paint('fault', 'red')}  {output.paint(place or 'file', 'bold')}  {reason}")


def _sum_up(bounds: Bounds, faults: int, *, is_json: bool) -> None:
    if is_json:
        output.say_json({"floor": bounds.floor, "head": bounds.head, "faults": faults})
        return
    entries = output.count(bounds.head - bounds.floor + 1, "entry", "entries")
    what = f"{entries}, {bounds.floor} to {bounds.head}" if bounds.head >= bounds.floor else "no entries"
    if faults:
        output.say(f"{output.paint('damaged', 'red', 'bold')}  {what}: {output.count(faults, 'fault', 'faults')}")
    else:
        output.say(f"{output.paint('ok', 'green', 'bold')}  {what}: dense, in order, every byte as it was written")
