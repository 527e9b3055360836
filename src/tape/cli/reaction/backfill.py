"""`tape reaction backfill`: make the tasks that a reaction would have from the beginning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, run as finish, shared

if TYPE_CHECKING:
    from tape.core.search import Findings, SearchOrder


@click.command()
@click.argument("reaction_id", metavar="ID")
@click.option("--from", "after", metavar="G", type=click.IntRange(min=0), default=0, help="After this position.")
@click.option("--to", "through", metavar="G", type=click.IntRange(min=0), help="Up to and with this position.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only count the matches.")
@shared
@in_lake
@click.pass_obj
def backfill(choices: Choices, reaction_id: str, after: int, through: int | None, is_dry: bool) -> None:
    """Make the tasks that ID would have, had it matched the whole history, lake and journal, with Spark.

    A task that exists is never made again, so the command can be repeated, and continues after it was interrupted.
    Entries after the reaction's cursor are left to the matcher.
    """
    from tape.lake.lazy_reader import check_installed

    check_installed()
    found = _search(_order(choices, reaction_id, after, through, is_dry))
    if choices.is_json:
        span = {"reaction_id": reaction_id, "from": found.after, "to": found.through}
        output.write_json({**span, "matches": found.matches, "made": found.made})
    else:
        matches = output.count(found.matches, "match", "matches")
        entries = output.count(found.searched, "entry", "entries")
        made = "nothing was made" if is_dry else f"{output.count(found.made, 'task', 'tasks')} made"
        output.write(f"{output.paint(matches, 'bold')} in {entries}, {made}")


def _order(choices: Choices, reaction_id: str, after: int, through: int | None, is_dry: bool) -> SearchOrder:
    from tape.core.search import SearchKind, SearchOrder
    from tape.lake.store_option import check_durable
    from tape.settings import Settings

    url, settings = check_durable(choices.location()[0]), Settings.read(os.environ)
    finish(choices.check_exists)
    return SearchOrder(
        kind=SearchKind.DRY_RUN if is_dry else SearchKind.BACKFILL,
        reaction_id=reaction_id,
        after=after,
        through=through,
        store=url,
        lake=str(choices.lake_folder()),
        folder=str(settings.data / "spark"),
        master=settings.spark_master,
    )


def _search(order: SearchOrder) -> Findings:
    from tape.core.search import Findings
    from tape.search_process import search

    found = Findings()
    for found in search(order):
        total = found.through - found.after
        output.progress(f"{found.searched:,} of {total:,} entries, {found.matches:,} matches, {found.made:,} made")
    return found
