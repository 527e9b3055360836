"""`tape reaction dry-run`: what a reaction would have matched, before it is registered."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, run as finish, shared
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.core.event import Entry
    from tape.core.search import DayFound
    from tape.lake.search.dry_run import DryRunSummary, EntryPosition, HistoryQuery
    from tape.lake.sql.predicate import CompiledPart

SAMPLE_CELLS: Final = 100
BARS: Final = " ▁▂▃▄▅▆▇█"
BARS_IN_LINE: Final = 60


@click.command("dry-run")
@click.option("--subject", "pattern", metavar="PATTERN", required=True, help="The subjects it would react to.")
@click.option("--where", metavar="CEL", default="", help="Only to entries this holds for.")
@click.option("--from", "after", metavar="G", type=click.IntRange(min=0), default=0, help="After this position.")
@click.option("--to", "through", metavar="G", type=click.IntRange(min=0), help="Up to and with this position.")
@click.option("--since", type=DurationType(), help="Only entries of the last 7d, or 12h, or 30m.")
@click.option(
    "--explain", is_flag=True, help="Show which part of --where Spark evaluates itself, and why not the rest."
)
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw it, .png or .svg.")
@shared
@in_lake
@click.pass_obj
def dry_run(choices: Choices, /, since: timedelta | None, explain: bool, plot: Path | None, **selection: Any) -> None:
    """Show what a reaction would have matched in the whole history, lake and journal, with Spark.

    Registers nothing and makes no tasks.
    """
    query = _query(since, selection)
    check_plot(plot)
    found = _search(choices, query)
    if plot is not None:
        _draw(found, plot)
    if choices.is_json:
        output.write_json(_facts(found, explain))
    else:
        _print(found, explain)


def _query(since: timedelta | None, selection: dict[str, Any]) -> HistoryQuery:
    if since is not None and (selection["after"] or selection["through"] is not None):
        raise click.UsageError("--since excludes --from and --to")
    from tape.lake.lazy_reader import check_installed

    check_installed()
    from tape.lake.search.dry_run import HistoryQuery

    return HistoryQuery(**selection, since=None if since is None else datetime.now(UTC) - since)


def check_plot(plot: Path | None) -> None:
    """Raises UsageError before the search if the plot could not be written."""
    if plot is None:
        return
    from tape.lake.reports.report import check_drawable

    check_drawable()
    from tape.lake.reports.results import check_path

    check_path(plot)


def _search(choices: Choices, query: HistoryQuery) -> DryRunSummary:
    from tape.lake.search.dry_run import summarize_dry_run
    from tape.lake.session import open_spark
    from tape.lake.store_option import check_durable

    url = check_durable(choices.location()[0])
    finish(choices.check_exists)
    output.progress("searching …")
    with open_spark() as spark:
        return summarize_dry_run(spark, url, choices.lake_folder(), query)


def _draw(found: DryRunSummary, path: Path) -> None:
    from tape.lake.reports.results import matches, write_plot

    write_plot(matches(found.days), path)


def _facts(found: DryRunSummary, is_explained: bool) -> dict[str, object]:
    from tape.cli.tail import as_columns

    cost = {**found.cost._asdict(), "native": found.cost.native}
    facts: dict[str, object] = {
        "matches": found.matches,
        "first": found.first and found.first._asdict(),
        "last": found.last and found.last._asdict(),
        "days": [{"day": _date(day.day_ms), "matches": day.matches} for day in found.days],
        "samples": [as_columns(entry) for entry in found.samples],
        "errors": [asdict(error) for error in found.errors],
        "cost": cost,
    }
    return {**facts, "explain": [_explained(part) for part in found.parts]} if is_explained else facts


def _explained(part: CompiledPart) -> dict[str, object]:
    return {"position": part.position, "route": part.route.value, "reason": part.reason, "sql": part.sql}


def _print(found: DryRunSummary, is_explained: bool) -> None:
    output.write(output.paint(output.count(found.matches, "match", "matches"), "bold") + _between(found))
    if found.days:
        output.write(f"{sparkline(_every_day(found.days))}  a day, from {_date(found.days[0].day_ms)} on")
    if found.samples:
        output.write(output.paint("the newest", "bold"))
        output.table(map(_sample, found.samples))
    if found.errors:
        output.write(output.paint("errors of the predicate", "bold"))
        output.table(
            (
                f"{error.entries:,}",
                f"{error.first_global_seq:,} – {error.last_global_seq:,}",
                output.escape(error.error),
            )
            for error in found.errors
        )
    if is_explained and found.parts:
        output.write(output.paint("which part Spark evaluates", "bold"))
        output.table((part.position, part.route.value, output.escape(part.reason)) for part in found.parts)
    _print_cost(found)


def _print_cost(found: DryRunSummary) -> None:
    cost = found.cost
    entries = output.count(cost.entries, "entry", "entries")
    output.write(output.paint(f"{entries} searched in {cost.seconds:.1f} s, {cost.native:.0%} by Spark itself", "dim"))


def _between(found: DryRunSummary) -> str:
    if found.first is None or found.last is None:
        return ""
    return f", the first {_position(found.first)} and the last {_position(found.last)}"


def _position(position: EntryPosition) -> str:
    when = datetime.fromtimestamp(position.ts_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return f"at {position.global_seq:,} ({when.removesuffix('+00:00')})"


def _every_day(days: tuple[DayFound, ...]) -> list[int]:
    """The matches of each day from the first to the last, including days without any."""
    day_ms = 86_400_000
    counts = [0] * ((days[-1].day_ms - days[0].day_ms) // day_ms + 1)
    for day in days:
        counts[(day.day_ms - days[0].day_ms) // day_ms] = day.matches
    return counts


def _sample(entry: Entry) -> tuple[str, ...]:
    text = entry.payload_json if entry.payload_json is not None else f"{len(entry.payload_bytes or b''):,} bytes"
    return f"{entry.global_seq:,}", output.escape(entry.subject), output.fit(output.escape(text), SAMPLE_CELLS)


def _date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()


def sparkline(numbers: Sequence[int], cells: int = BARS_IN_LINE) -> str:
    """A bar for each number, or for each group of neighbours; only zeros have no bar."""
    together = max(1, -(-len(numbers) // cells))
    sums = [sum(numbers[first : first + together]) for first in range(0, len(numbers), together)]
    most = max(sums, default=0) or 1
    return "".join(BARS[-(-number * (len(BARS) - 1) // most)] for number in sums)
