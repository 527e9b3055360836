"""`tape lake`: the journal's history as Parquet files, written by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, run, run_in_thread, shared
from tape.cli.lake import printing
from tape.cli.lake.location import existing, log_of
from tape.cli.lake.tables import report, tables
from tape.cli.serve import log_to_stderr
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from tape.lake.log import DeltaLog, LakeSnapshot
    from tape.lake.pipeline import SyncStep
    from tape.store.duckdb.parquet import Parquet

T = TypeVar("T")


@click.group(no_args_is_help=False)
@shared
@in_lake
def lake() -> None:
    """Keep the journal's whole history as Parquet files, and query it with SQL."""


@lake.command()
@click.option("--follow", is_flag=True, help="Continue with new entries until interrupted.")
@click.option("--step", type=click.IntRange(min=1), default=250_000, show_default=True, help="Entries a commit.")
@shared
@in_lake
@click.pass_obj
def sync(choices: Choices, follow: bool, step: int) -> None:
    """Copy new entries of the journal into the lake, with Spark.

    The lake's own log records where to continue, even after an interrupted sync.
    """
    run(partial(_follow if follow else _sync, choices, step))


async def _sync(choices: Choices, step: int) -> None:
    from tape.lake.pipeline import spark_writer, sync as sync_once
    from tape.lake.session import open_spark
    from tape.lake.store_option import check_durable

    url, log = check_durable(choices.location()[0]), log_of(choices)
    last: SyncStep | None = None
    async with choices.open_store(must_exist=True) as store:
        with spark_writer(open_spark, url) as write:
            async with aclosing(sync_once(store.journal, log, write, step)) as steps:
                async for last in steps:
                    printing.print_step(last, is_json=choices.is_json)
    printing.print_synced(last, is_json=choices.is_json)


async def _follow(choices: Choices, step: int) -> None:
    """Retries a step when the store is reachable again."""
    from tape.lake.pipeline import follow, spark_writer
    from tape.lake.session import open_spark
    from tape.lake.store_option import check_durable
    from tape.work.outages import Outage, open_when_available, retry_outages

    url, log = check_durable(choices.location()[0]), log_of(choices)
    log_to_stderr()
    async with open_when_available(partial(choices.open_store, must_exist=True), "lake sync") as store:
        with spark_writer(open_spark, url) as write:

            async def follow_until_error(outage: Outage) -> None:
                async with aclosing(follow(store.journal, log, write, step)) as steps:
                    async for done in steps:
                        outage.recovered()
                        printing.print_step(done, is_json=choices.is_json)

            await retry_outages(follow_until_error, "lake sync")


@lake.command()
@shared
@in_lake
@click.pass_obj
def status(choices: Choices) -> None:
    """Show which positions are cold, warm and hot, and how far the lake is behind."""
    run(partial(_status, choices))


async def _status(choices: Choices) -> None:
    from tape.lake.same_journal import check_same_journal
    from tape.lake.status import status_of

    log = log_of(choices)
    async with choices.open_store(must_exist=True) as store:
        await check_same_journal(store.journal, log, log.snapshot())
        printing.print_status(await status_of(store.journal, log), is_json=choices.is_json)


@lake.command()
@shared
@in_lake
@click.pass_obj
def compact(choices: Choices) -> None:
    """Merge small files with adjacent positions; every version keeps its entries."""
    from tape.lake.compaction import compact as merge

    printing.print_compacted(run(partial(_exclusively, existing(choices), merge)), is_json=choices.is_json)


@lake.command()
@click.option(
    "--grace", type=DurationType(), default="1h", show_default=True, help="Keep files that are younger than this."
)
@shared
@in_lake
@click.pass_obj
def vacuum(choices: Choices, grace: timedelta) -> None:
    """Delete files that are no longer part of the lake."""
    from tape.lake.compaction import vacuum as delete

    done = run(partial(_exclusively, existing(choices), partial(delete, grace=grace)))
    printing.print_vacuumed(done, is_json=choices.is_json)


async def _exclusively(log: DeltaLog, task: Callable[[DeltaLog], T]) -> T:
    """Runs a task while no other process on this machine writes the lake."""
    from anyio import to_thread

    from tape.lake.file_lock import exclusive_lock

    async with exclusive_lock(log.table):
        return await to_thread.run_sync(task, log)


@lake.command()
@click.option("--deep", is_flag=True, help="Check the checksum of every entry, too.")
@shared
@in_lake
@click.pass_obj
def verify(choices: Choices, deep: bool) -> int:
    """Check that every version holds exactly 1 to its last position, and that the files match the log.

    Exits with 0 if there is no fault and with 8 otherwise.
    """
    from tape.core.errors import Corrupt
    from tape.lake.verify import faults

    log = existing(choices)
    count = 0
    output.progress("checking versions and files …")
    for fault in faults(log, is_deep=deep):
        printing.print_fault(fault, is_json=choices.is_json)
        count += 1
    printing.print_verified(None if count else log.snapshot(), count, is_json=choices.is_json)
    return Corrupt.exit_code if count else 0


@lake.command("as-of")
@click.argument("position", metavar="G", type=click.IntRange(min=0))
@click.argument("sql", required=False)
@shared
@in_lake
@click.pass_obj
def as_of(choices: Choices, position: int, sql: str | None) -> None:
    """Show what there was at a position of the journal, or query it with SQL."""
    from tape.core.errors import InvalidCursor
    from tape.lake.confinement import confine

    log = existing(choices)
    snapshot = log.snapshot()
    if position > snapshot.through:
        raise InvalidCursor(f"the lake ends at {snapshot.through}, before {position}")

    def answer() -> None:
        confine()
        with _parquet(log, snapshot, position) as parquet:
            printing.print_rows(parquet.query(sql) if sql else parquet.as_of(), is_json=choices.is_json)

    run_in_thread(answer)


@lake.command()
@click.argument("sql")
@shared
@in_lake
@click.pass_obj
def query(choices: Choices, sql: str) -> None:
    """Run one query with DuckDB; the view `journal` has every entry of the lake, and every table is a view."""
    from tape.lake.confinement import confine
    from tape.lake.derived_tables import existing_tables

    log = existing(choices)
    views = {table.name: table.files for table in existing_tables(log.table.parent)}

    def answer() -> None:
        confine()
        with _parquet(log, log.snapshot(), views=views) as parquet:
            printing.print_rows(parquet.query(sql), is_json=choices.is_json)

    run_in_thread(answer)


def _parquet(
    log: DeltaLog, snapshot: LakeSnapshot, through: int | None = None, views: Mapping[str, Sequence[Path]] | None = None
) -> Parquet:
    from tape.store.duckdb.parquet import NO_SPILLING, Parquet

    return Parquet(log.table, [file.path for file in snapshot.files], through, views, NO_SPILLING)


lake.add_command(tables)
lake.add_command(report)
