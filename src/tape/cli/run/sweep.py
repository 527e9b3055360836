"""`tape run sweep`: forks a run once for every combination of values, on Spark."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.modules import search_current_folder
from tape.cli.producers import load_producers

if TYPE_CHECKING:
    from tape.core.codec import JsonValue
    from tape.core.producer import Producer
    from tape.lake.sweep import SweepOrder
    from tape.runs.outcomes import RunOutcome, SweptRun


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--at", "at_seq", metavar="SEQ", type=int, required=True, help="The last seq that is inherited.")
@click.option("--vary", multiple=True, required=True, metavar="FIELD=A,B,C", help="The values of a field; repeatable.")
@click.option("--turns", "n_turns", type=int, default=10, show_default=True, help="How many turns each fork plays.")
@click.option("--producer", metavar="NAME", default="arena", show_default=True, help="The producer that plays them.")
@click.option("--producers", multiple=True, metavar="MODULE[:NAME]", help="Load producers; repeatable.")
@click.option("--reason", help="The reason, kept in every fork's first entry.")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw it, .png or .svg.")
@shared
@click.pass_obj
def sweep(
    choices: Choices,
    /,
    run_id: str,
    vary: tuple[str, ...],
    producers: tuple[str, ...],
    plot: Path | None,
    **options: Any,
) -> int:
    """Fork RUN at one seq once for every combination of values, and show how each fork ended.

    One Spark job plays all forks. Each becomes a run of its own, which is closed at its end.
    """
    from tape.cli.reaction.dry_run import check_plot
    from tape.lake.lazy_reader import check_installed

    check_installed()
    check_plot(plot)
    from tape.lake.sweep import SweepOrder

    order = SweepOrder(vary=_varied(vary), **options)
    found = finish(partial(_sweep, choices, run_id, order, producers))
    if plot is not None:
        from tape.lake.reports.results import outcomes, write_plot

        write_plot(outcomes(found), plot)
    _print(choices, found)
    return 1 if any(each.error for each in found) else 0


def find_producer(folder: str, places: tuple[str, ...], name: str) -> Producer:
    """Finds a producer by name, here or in a Spark worker; modules may be in the given folder."""
    if places and folder not in sys.path:
        sys.path.insert(0, folder)
    return load_producers(places).find(name)


def _varied(texts: tuple[str, ...]) -> dict[str, list[JsonValue]]:
    found: dict[str, list[JsonValue]] = {}
    for text in texts:
        field, sign, values = text.partition("=")
        if not sign or not field or not values:
            raise click.UsageError(f"--vary is like food=0,100,500, not {text!r}")
        if field in found:
            raise click.UsageError(f"--vary names {field!r} twice; give all its values at once")
        found[field] = [_value(each) for each in values.split(",")]
    return found


def _value(text: str) -> JsonValue:
    """Parses a number, true, false or null as JSON; any other text stays text."""
    from tape.core import codec
    from tape.core.errors import UsageError

    try:
        return codec.decode(text)
    except UsageError:
        return text


async def _sweep(choices: Choices, run_id: str, order: SweepOrder, places: tuple[str, ...]) -> list[SweptRun]:
    from tape import compose
    from tape.cli.run.command import found_run
    from tape.lake.session import open_spark
    from tape.lake.sweep import sweep as sweep_all

    search_current_folder(places)
    load = partial(find_producer, os.getcwd(), places, order.producer)  # noqa: PTH109 - a word in sys.path
    async with choices.open_store(must_exist=True) as store, compose.run_journal(store) as journal:
        parent = await found_run(store, run_id)
        load()
        output.progress("playing the forks …")
        with open_spark() as spark:
            return await sweep_all(spark, journal, parent, order, load)


def _print(choices: Choices, found: list[SweptRun]) -> None:
    if choices.is_json:
        for each in found:
            output.write_json(_facts(each))
        return
    agents = list(dict.fromkeys(outcome.agent for each in found for outcome in each.outcomes))
    heads = ("fork", "changed", "events", "differing", *agents, "")
    rows = [tuple(output.paint(output.escape(head), "bold") for head in heads), *(_row(each, agents) for each in found)]
    output.table(rows)


def _row(each: SweptRun, agents: list[str]) -> tuple[str, ...]:
    ends = {outcome.agent: _end(outcome) for outcome in each.outcomes}
    numbers = f"{each.last_seq:,}", f"{each.differing:,}"
    failed = output.paint(output.escape(each.error), "red") if each.error else ""
    return each.run_id, output.escape(each.label), *numbers, *(ends.get(agent, "") for agent in agents), failed


def _end(outcome: RunOutcome) -> str:
    return f"{outcome.value:g}" if outcome.difference is None else f"{outcome.value:g} ({outcome.difference:+g})"


def _facts(each: SweptRun) -> dict[str, object]:
    ends = [{**outcome._asdict(), "difference": outcome.difference} for outcome in each.outcomes]
    return {**each._asdict(), "outcomes": ends}
