"""`tape lake tables` and `tape lake report`: derived tables, and a page that draws them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, run, shared
from tape.cli.lake.location import existing, log_of

if TYPE_CHECKING:
    from tape.lake.derived_tables import TableUpdate
    from tape.lake.log import DeltaLog


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@shared
@in_lake
@click.pass_obj
def tables(choices: Choices, names: tuple[str, ...]) -> None:
    """Update the lake's tables with Spark: runs, types, subjects, models, tools, metrics, forks and more.

    Entries that a table could not read are in the table quarantine, with the reason.
    """
    run(partial(_tables, choices, names))


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The page.  [default: <lake>/report.html]")
@shared
@in_lake
@click.pass_obj
def report(choices: Choices, out: Path | None) -> None:
    """Draw the lake's tables: one HTML page that needs nothing else, and a folder of PNGs beside it."""
    run(partial(_report, choices, out))


async def _tables(choices: Choices, names: tuple[str, ...]) -> None:
    from tape.lake.derived_tables import NAMES, check_name

    wanted = [check_name(name) for name in names] or NAMES
    for update in await make_tables(existing(choices), wanted, is_quiet=choices.is_json):
        _print_update(update, is_json=choices.is_json)


async def _report(choices: Choices, out: Path | None) -> None:
    from tape.lake.derived_tables import NAMES, are_current

    log = existing(choices)
    if not are_current(log):
        await make_tables(log, NAMES, is_quiet=choices.is_json)
    page = await draw_report(choices, out)
    if choices.is_json:
        output.write_json({"page": str(page)})
    else:
        output.write(f"{output.paint('ok', 'green', 'bold')}  {output.escape(str(page))}")


async def make_tables(log: DeltaLog, names: tuple[str, ...] | list[str], *, is_quiet: bool) -> list[TableUpdate]:
    """Updates tables while no other process on this machine does."""
    from anyio import to_thread

    from tape.lake.derived_tables import FOLDER, update_tables
    from tape.lake.file_lock import exclusive_lock
    from tape.lake.session import open_spark

    def update_all() -> list[TableUpdate]:
        updates = []
        for update in update_tables(log, open_spark, names):
            updates.append(update)
            if not is_quiet:
                output.progress(f"{len(updates)} of {len(names)} tables …")
        return updates

    async with exclusive_lock(log.table.parent / FOLDER):
        return await to_thread.run_sync(update_all)


async def draw_report(choices: Choices, out: Path | None) -> Path:
    """Draws the tables; returns the path of the page."""
    from anyio import to_thread

    from tape.lake.reports.report import check_drawable, write_report
    from tape.lake.reports.task_outcomes import write_outcomes
    from tape.lake.status import status_of

    check_drawable()
    log = log_of(choices)
    async with choices.open_store(must_exist=True) as store:
        status = await status_of(store.journal, log)
        outcomes = await store.tasks.outcomes()
    await to_thread.run_sync(write_outcomes, log.table.parent, outcomes, status.warm.head)
    page = (out or log.table.parent / "report.html").absolute()
    await to_thread.run_sync(write_report, log.table.parent, status, page)
    return page


def _print_update(update: TableUpdate, *, is_json: bool) -> None:
    if is_json:
        output.write_json(update._asdict())
        return
    what = "" if update.is_new else "  unchanged"
    rows = output.count(update.rows, "row", "rows")
    output.write(f"{output.paint(f'{update.name:<20}', 'bold')} {rows:>14}  as of {update.through:,}{what}")
