"""`tape reaction dry-run`: what a reaction would have done, before there is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, in_lake, shared
from tape.cli.lake.location import spark_opener
from tape.cli.spans import Span
from tape.cli.sparkline import sparkline

if TYPE_CHECKING:
    from tape.core.event import Entry
    from tape.lake.search.dry_run import Day, DryRunSummary, EntryPosition, HistoryQuery
    from tape.lake.sql.predicate import CompiledPart

SAMPLE_CELLS: Final = 100


@click.command("dry-run")
@click.option("--subject", "pattern", metavar="PATTERN", required=True, help="The subjects it would react to.")
@click.option("--where", metavar="CEL", default="", help="Only to entries this holds for.")
@click.option("--from", "after", metavar="G", type=click.IntRange(min=0), default=0, help="After this position.")
@click.option("--to", "through", metavar="G", type=click.IntRange(min=0), help="Up to and with this position.")
@click.option("--since", type=Span(), help="Only what was said in the last 7d, or 12h, or 30m.")
@click.option("--explain", is_flag=True, help="Say which part of --where Spark answers itself, and why not the rest.")
@click.option("--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw it, .png or .svg.")
@shared
@in_lake
@click.pass_obj
def dry_run(choices: Choices, /, since: timedelta | None, explain: bool, plot: Path | None, **asked: Any) -> None:
    """Say what a reaction would have matched in all of history, lake and journal, with Spark.

    Nothing is registered, and nothing is done.
    """
    question = _question(since, asked)
    check_plot(plot)
    found = _rehearse(choices, question)
    if plot is not None:
        _draw(found, plot)
    if choices.is_json:
        output.write_json(_facts(found, explain))
    else:
        _say(found, explain)


def _question(since: timedelta | None, asked: dict[str, Any]) -> HistoryQuery:
    if since is not None and (asked["after"] or asked["through"] is not None):
        raise click.UsageError("--since is a place by itself; leave out --from and --to")
    from tape.lake.lazy_reader import check_installed

    check_installed()
    from tape.lake.search.dry_run import HistoryQuery

    return HistoryQuery(**asked, since=None if since is None else datetime.now(UTC) - since)


def check_plot(plot: Path | None) -> None:
    """Refuses a picture that could not be drawn, before there is anything to draw."""
    if plot is None:
        return
    from tape.lake.reports.report import check_drawable

    check_drawable()
    from tape.lake.reports.results import check_path

    check_path(plot)


def _rehearse(choices: Choices, question: HistoryQuery) -> DryRunSummary:
    from tape.lake.search.dry_run import summarize_dry_run
    from tape.lake.store_option import check_durable

    url = check_durable(choices.location()[0])
    choices.check_exists()
    output.progress("asking history …")
    with spark_opener()() as spark:
        return summarize_dry_run(spark, url, choices.lake_folder(), question)


def _draw(found: DryRunSummary, path: Path) -> None:
    from tape.lake.reports.results import matches, write_plot

    write_plot(matches(found.days), path)


def _facts(found: DryRunSummary, is_explained: bool) -> dict[str, object]:
    from tape.cli.tail import as_columns

    cost = {**found.cost._asdict(), "native": found.cost.native}
    told: dict[str, object] = {
        "matches": found.matches,
        "first": found.first and found.first._asdict(),
        "last": found.last and found.last._asdict(),
        "days": [{"day": _date(day.day_ms), "matches": day.matches} for day in found.days],
        "samples": [as_columns(entry) for entry in found.samples],
        "errors": [cause._asdict() for cause in found.errors],
        "cost": cost,
    }
    return {**told, "explain": [_explained(part) for part in found.parts]} if is_explained else told


def _explained(part: CompiledPart) -> dict[str, object]:
    return {"position": part.position, "route": part.route.value, "reason": part.reason, "sql": part.sql}


def _say(found: DryRunSummary, is_explained: bool) -> None:
    output.write(output.paint(output.count(found.matches, "match", "matches"), "bold") + _between(found))
    if found.days:
        output.write(f"{sparkline(_every_day(found.days))}  a day, from {_date(found.days[0].day_ms)} on")
    if found.samples:
        output.write(output.paint("the newest", "bold"))
        output.table(map(_sample, found.samples))
    if found.errors:
        output.write(output.paint("where the predicate erred", "bold"))
        output.table(
            (
                f"{cause.entries:,}",
                f"{cause.first_global_seq:,} – {cause.last_global_seq:,}",
                output.escape(cause.error),
            )
            for cause in found.errors
        )
    if is_explained and found.parts:
        output.write(output.paint("who answers which part", "bold"))
        output.table((part.position, part.route.value, output.escape(part.reason)) for part in found.parts)
    _say_cost(found)


def _say_cost(found: DryRunSummary) -> None:
    cost = found.cost
    looked = output.count(cost.entries, "entry", "entries")
    output.write(output.paint(f"{looked} looked at in {cost.seconds:.1f} s, {cost.native:.0%} by Spark itself", "dim"))


def _between(found: DryRunSummary) -> str:
    if found.first is None or found.last is None:
        return ""
    return f", the first {_told(found.first)} and the last {_told(found.last)}"


def _told(place: EntryPosition) -> str:
    when = datetime.fromtimestamp(place.ts_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return f"at {place.global_seq:,} ({when.removesuffix('+00:00')})"


def _every_day(days: tuple[Day, ...]) -> list[int]:
    """The days between the first and the last, those without a match, too."""
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
