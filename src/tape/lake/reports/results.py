"""Plots of single results: the matches of a dry run by day, and the outcomes of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tape.core.errors import UsageError, quoted
from tape.core.search import DayFound
from tape.lake.reports.drawing import DARK, LIGHT, WIDE, Canvas, Plot, name_rows, png, svg, tint
from tape.lake.search.dry_run import DAY_MS
from tape.runs.outcomes import RunOutcome, SweptRun

SUFFIXES: Final = (".png", ".svg")
ROW: Final = 0.26


def check_path(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"a plot is a file that ends with .png or .svg, not {quoted(path.name)}")


def write_plot(plot: Plot, path: Path) -> None:
    """Writes a plot as PNG, or as SVG with its own colours for light and dark."""
    check_path(path)
    if path.suffix == ".png":
        path.write_bytes(png(plot))
    else:
        element, rest = svg(plot).split(">", 1)
        path.write_text(f"{element}><style>{_colours()}</style>{rest}", encoding="utf-8")


def matches(days: Sequence[DayFound]) -> Plot:
    """The matches of each day."""
    total = sum(day.matches for day in days)

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        for day in days:
            bar = axes.bar(day.day_ms, day.matches, DAY_MS * 0.86, align="edge", color=LIGHT["accent"])
            canvas.add_tooltip(list(bar), f"{day.matches:,} on {_date(day.day_ms)}")
        axes.grid(axis="y")
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        _date_axis(axes, [day.day_ms for day in days])

    return Plot("matches", "Matches per day", f"{total:,} matches on {len(days):,} days", (WIDE, 2.6), draw)


def outcomes(runs: Sequence[SweptRun]) -> Plot:
    """The last value of every agent in each fork, and its parent's value at the same turn."""
    agents = list(dict.fromkeys(outcome.agent for run in runs for outcome in run.outcomes))

    def draw(canvas: Canvas) -> None:
        for place, (axes, agent) in enumerate(zip(canvas.axes(max(len(agents), 1), sharey=True), agents, strict=False)):
            for row, run in enumerate(runs):
                for outcome in (each for each in run.outcomes if each.agent == agent):
                    _draw_outcome(canvas, axes, row, outcome, tint(place))
            axes.set_title(agent)
            axes.grid(axis="x")
            name_rows(axes, [run.label for run in runs])

    size = (WIDE, 0.8 + ROW * max(len(runs), 4))
    return Plot("sweep", "Where the forks ended", f"{len(runs):,} forks, {len(agents):,} agents", size, draw)


def _draw_outcome(canvas: Canvas, axes: Axes, row: int, outcome: RunOutcome, colour: str) -> None:
    if outcome.parent_value is not None:
        axes.plot([outcome.parent_value, outcome.value], [row, row], color=LIGHT["faint"], linewidth=1.6)
        axes.plot([outcome.parent_value], [row], "|", color=LIGHT["quiet"], markersize=9)
    (dot,) = axes.plot([outcome.value], [row], "o", color=colour, markersize=5)
    instead = "" if outcome.parent_value is None else f" instead of {outcome.parent_value:g}"
    canvas.add_tooltip([dot], f"{outcome.value:g}{instead} after turn {outcome.turn_num}")


def _date_axis(axes: Axes, days: Sequence[int]) -> None:
    first, last = (min(days), max(days) + DAY_MS) if days else (0, DAY_MS)
    axes.set_xlim(first, last)
    step = max(1, (last - first) // DAY_MS // 8) * DAY_MS
    axes.set_xticks([day + DAY_MS / 2 for day in range(first, last, step)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _date(value)))


def _date(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def _colours() -> str:
    light = "".join(f"--{name}:{colour};" for name, colour in LIGHT.items())
    dark = "".join(f"--{name}:{colour};" for name, colour in DARK.items())
    return f"svg{{background:var(--card);{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
