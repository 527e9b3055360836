"""`tape reaction backfill`: make the tasks that a reaction would have from the beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, shared
from tape.cli.lake.location import spark_opener

if TYPE_CHECKING:
    from tape.lake.search.backfill import BackfillPlan


@dataclass(slots=True)
class Tally:
    """How much was looked at, matched and made so far."""

    searched: int = 0
    matches: int = 0
    made: int = 0


@click.command()
@click.argument("reaction_id", metavar="ID")
@click.option("--from", "after", metavar="G", type=click.IntRange(min=0), default=0, help="After this position.")
@click.option("--to", "through", metavar="G", type=click.IntRange(min=0), help="Up to and with this position.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Only say how much it matches.")
@shared
@in_lake
@click.pass_obj
def backfill(choices: Choices, reaction_id: str, after: int, through: int | None, is_dry: bool) -> None:
    """Make the tasks that ID would have, had it matched all of history, lake and journal, with Spark.

    A task that is there is never made again, so this can be repeated, and goes on where it was ended. What comes after
    the reaction's cursor is left to the matcher.
    """
    from tape.lake.lazy_reader import check_installed

    check_installed()
    plan, tally = _backfill(choices, reaction_id, after, through, is_dry)
    if choices.is_json:
        told = {"reaction_id": reaction_id, "from": plan.after, "to": plan.through}
        output.write_json({**told, "matches": tally.matches, "made": tally.made})
    else:
        matched, looked = (
            output.count(tally.matches, "match", "matches"),
            output.count(tally.searched, "entry", "entries"),
        )
        made = "nothing was made" if is_dry else f"{output.count(tally.made, 'task', 'tasks')} made"
        output.write(f"{output.paint(matched, 'bold')} in {looked}, {made}")


def _backfill(
    choices: Choices, reaction_id: str, after: int, through: int | None, is_dry: bool
) -> tuple[BackfillPlan, Tally]:
    from anyio.from_thread import start_blocking_portal

    from tape import compose
    from tape.lake.search.backfill import find_matches, plan_backfill
    from tape.lake.store_option import check_durable

    url, lake, tally = check_durable(choices.location()[0]), choices.lake_folder(), Tally()
    choices.check_exists()
    opened = compose.open_backend(url, lake=lake)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as backend:
        plan = portal.call(plan_backfill, backend.store, backend.journal, reaction_id, after, through)
        _say_progress(plan, tally)
        with spark_opener()() as spark:
            for some in find_matches(spark, url, lake, plan):
                tally.searched, tally.matches = some.searched, tally.matches + len(some.matches)
                tally.made += portal.call(backend.store.tasks.make, some.matches) if some.matches and not is_dry else 0
                _say_progress(plan, tally)
    return plan, tally


def _say_progress(plan: BackfillPlan, tally: Tally) -> None:
    total = plan.through - plan.after
    output.progress(f"{tally.searched:,} of {total:,} entries, {tally.matches:,} matches, {tally.made:,} made")
