"""Plots over time and position: cold, warm and hot positions, events per minute, runs and their forks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tape.core.lake import LakeStatus
from tape.core.ports import Bounds
from tape.lake.reports.drawing import LIGHT, WIDE, Canvas, Plot, label, name_rows, short, tint

MOST_BARS: Final = 180
MOST_TYPES: Final = 11
MOST_RUNS: Final = 40
FEW_MINUTES: Final = 3
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
MOST_TICKS: Final = 8
STEPS_MS: Final = tuple(
    unit * each
    for unit, steps in ((1_000, (1, 2, 5, 10, 15, 30)), (MINUTE_MS, (1, 2, 5, 10, 15, 30)))
    for each in steps
) + tuple(60 * MINUTE_MS * each for each in (1, 2, 3, 6, 12, 24))
OTHER: Final = "other"
STATUS_COLOURS: Final = {"failed": "bad", "cancelled": "busy", "stuck": "bad", "compensating": "busy"}
TEMPERATURES: Final = {"cold": "type-0", "warm": "busy", "hot": "bad"}

Rows: TypeAlias = Sequence[Mapping[str, Any]]


def temperatures(status: LakeStatus) -> Plot:
    """Which positions are in the lake, in the journal and in memory."""
    head = max(status.warm.head, status.cold.head, 1)
    spans = {"cold": status.cold, "warm": status.warm, "hot": status.hot}

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        for row, (name, bounds) in enumerate(spans.items()):
            axes.barh(row, head, 0.62, color=LIGHT["faint"], alpha=0.45)
            held = max(bounds.head - bounds.floor + 1, 0)
            bar = axes.barh(row, held, 0.62, left=bounds.floor - 1, color=LIGHT[TEMPERATURES[name]])
            canvas.add_tooltip(list(bar), f"{name}: {_span(bounds)}")
            label(axes, head, row, _span(bounds))
        name_rows(axes, list(spans))
        axes.set_xlim(0, head)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

    about = "; ".join(f"{name}: {_span(bounds)}" for name, bounds in spans.items())
    return Plot("temperatures", "Where the entries are", about, (WIDE, 1.55), draw)


def events(per_minute: Rows) -> Plot:
    """Events per minute by type; only by type if the journal covers a few minutes."""
    totals: Counter[str] = Counter()
    for row in per_minute:
        totals[row["type"]] += row["n_events"]
    most = totals.most_common(MOST_TYPES)
    if len(totals) > len(most):
        most.append((OTHER, totals.total() - sum(count for _, count in most)))
    about = ", ".join(f"{count:,} {name}" for name, count in most)
    minutes = [row["minute_ms"] for row in per_minute]
    if max(minutes) - min(minutes) < FEW_MINUTES * MINUTE_MS:
        size = (WIDE, 0.6 + 0.24 * max(len(most), 3))
        return Plot("events", "Events by type", about, size, lambda canvas: _draw_types(canvas, most))
    names = [name for name, _ in most]
    return Plot(
        "events", "Events per minute, by type", about, (WIDE, 3.4), lambda canvas: _draw_bars(canvas, per_minute, names)
    )


def _draw_types(canvas: Canvas, most: Sequence[tuple[str, int]]) -> None:
    (axes,) = canvas.axes()
    for row, (name, count) in enumerate(most):
        canvas.add_tooltip(list(axes.barh(row, count, 0.7, color=_type_colour(row, name))), f"{name}: {count:,}")
        label(axes, count, row, f"{count:,}")
    name_rows(axes, [short(name) for name, _ in most])
    axes.xaxis.set_visible(False)
    axes.spines.bottom.set_visible(False)
    axes.margins(x=0.08)


def _draw_bars(canvas: Canvas, per_minute: Rows, names: Sequence[str]) -> None:
    """Draws bars of one minute, or of as many minutes as keep them wide enough."""
    (axes,) = canvas.axes()
    first = min(row["minute_ms"] for row in per_minute)
    last = max(row["minute_ms"] for row in per_minute) + MINUTE_MS
    minutes = -(-(last - first) // MINUTE_MS // MOST_BARS) or 1
    bars: dict[str, Counter[int]] = {name: Counter() for name in names}
    for row in per_minute:
        name = row["type"] if row["type"] in bars else OTHER
        bars[name][first + (row["minute_ms"] - first) // (minutes * MINUTE_MS) * minutes * MINUTE_MS] += row["n_events"]
    _stack(canvas, axes, bars, minutes)
    axes.grid(axis="y")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _time_axis(axes, first, last)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, labelcolor=LIGHT["text"], reverse=True)


def _stack(canvas: Canvas, axes: Axes, bars: Mapping[str, Counter[int]], minutes: int) -> None:
    floor: Counter[int] = Counter()
    for place, (name, found) in enumerate(bars.items()):
        heights = [count / minutes for count in found.values()]
        bottoms = [floor[left] / minutes for left in found]
        look: dict[str, Any] = {
            "color": _type_colour(place, name),
            "label": short(name),
            "linewidth": 0,
            "align": "edge",
        }
        drawn = axes.bar(list(found), heights, minutes * MINUTE_MS * 0.86, bottoms, **look)
        for bar, left, height in zip(drawn, found, heights, strict=True):
            canvas.add_tooltip([bar], f"{name}: {height:,.0f} a minute at {_clock(left)}")
        floor.update(found)


def _type_colour(place: int, name: str) -> str:
    return LIGHT["quiet"] if name == OTHER else tint(place)


def timeline(runs: Rows, forks: Rows) -> Plot:
    """Every run from its first entry to its last, with a curve from its parent for a fork."""
    shown = _families(runs)
    left_out = sum(row["status"] != "system" for row in runs) - len(shown)
    more = f"; {left_out:,} more are not shown" if left_out else ""
    about = f"{len(shown):,} runs, {sum(bool(row['parent_run_id']) for row in shown):,} of them forks{more}"

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        places = {row["run_id"]: place for place, row in enumerate(shown)}
        first = min((row["first_ts_ms"] for row in shown), default=0)
        last = max([row["last_ts_ms"] for row in shown], default=1)
        span = max(last - first, 1)
        for row in shown:
            _draw_run(canvas, axes, row, places[row["run_id"]], span)
        for fork in {fork["run_id"]: fork for fork in forks}.values():
            if fork["run_id"] in places and fork["parent_run_id"] in places:
                _draw_branch(axes, fork, places)
        name_rows(axes, [_named(row) for row in shown])
        axes.grid(axis="x")
        _time_axis(axes, first - span * 0.005, last + span * 0.09)

    return Plot("timeline", "Runs and their forks", about, (WIDE, 0.75 + 0.24 * max(len(shown), 3)), draw)


def _families(runs: Rows) -> list[Mapping[str, Any]]:
    """Chooses the runs to show, each fork below its parent: runs with forks first, then the largest."""
    own = {row["run_id"]: row for row in runs if row["status"] != "system"}
    children: dict[str | None, list[Mapping[str, Any]]] = {}
    for row in own.values():
        children.setdefault(row["parent_run_id"] if row["parent_run_id"] in own else None, []).append(row)
    parents = set(children)

    def family(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        below = sorted(children.get(row["run_id"], []), key=lambda child: (child["at_seq"], child["run_id"]))
        return [row, *(member for child in below for member in family(child))]

    roots = sorted(children.get(None, []), key=lambda row: (row["run_id"] not in parents, -row["n_events"]))
    chosen: list[list[Mapping[str, Any]]] = []
    for root in roots:
        if sum(map(len, chosen)) < MOST_RUNS:
            chosen.append(family(root))
    chosen.sort(key=lambda each: (each[0]["first_ts_ms"], each[0]["run_id"]))
    return [row for each in chosen for row in each][:MOST_RUNS]


def _draw_run(canvas: Canvas, axes: Axes, row: Mapping[str, Any], place: int, span: int) -> None:
    is_fork = row["parent_run_id"] is not None
    colour = LIGHT[STATUS_COLOURS.get(row["status"], "type-3" if is_fork else "accent")]
    width = max(row["duration_ms"], span * 0.004)  # a narrower bar would not be visible
    bar = FancyBboxPatch(
        (row["first_ts_ms"], place - 0.28), width, 0.56, "round,pad=0,rounding_size=0", color=colour, linewidth=0
    )
    axes.add_patch(bar)
    count = f"{row['n_events']:,} entries"
    canvas.add_tooltip([bar], f"{row['run_id']}: {row['status']}, {count}, {row['duration_ms'] / 1000:,.1f} s")
    text = count if row["status"] == "open" else f"{count}, {row['status']}"
    label(axes, row["first_ts_ms"] + width, place, text, fontsize=7.5)


def _draw_branch(axes: Axes, fork: Mapping[str, Any], places: Mapping[str, int]) -> None:
    """Draws a curve from where a fork parts from its parent to its first entry."""
    end = fork["forked_ts_ms"]
    begin = end if fork["parted_ts_ms"] is None else fork["parted_ts_ms"]
    top, bottom = places[fork["parent_run_id"]], places[fork["run_id"]]
    points = [(begin, top), (begin, bottom), (begin, bottom), (end, bottom)]
    curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
    axes.add_patch(PathPatch(curve, fill=False, edgecolor=LIGHT["type-3"], linewidth=1.4, zorder=3))
    axes.plot([begin], [top], "o", markersize=4.5, color=LIGHT["card"], markeredgecolor=LIGHT["type-3"], zorder=4)


def _time_axis(axes: Axes, first: float, last: float) -> None:
    """Labels the axis with round times."""
    axes.set_xlim(first, last)
    wanted = (last - first) / MOST_TICKS
    step = next((each for each in STEPS_MS if each >= wanted), -(-wanted // DAY_MS) * DAY_MS)
    axes.set_xticks(range(int(-(-first // step) * step), int(last), int(step)))
    form = "%H:%M:%S" if step < MINUTE_MS else ("%d %b %H:%M" if last - first > DAY_MS else "%H:%M")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _clock(value, form)))


def _clock(ms: float, form: str = "%d %b %H:%M") -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)


def _span(bounds: Bounds) -> str:
    return f"{bounds.floor:,} – {bounds.head:,}" if bounds.head >= bounds.floor else "nothing"


def _named(row: Mapping[str, Any]) -> str:
    return f"↳ {short(row['run_id'])}" if row["parent_run_id"] else short(row["run_id"])
