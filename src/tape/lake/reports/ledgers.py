"""Plots of the ledgers: latencies of effects, and spending of budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from tape.lake.reports.drawing import HALF, LIGHT, Canvas, Plot, label, tint
from tape.lake.reports.usage import finish_rows, height_of

MOST_ROWS: Final = 12

Rows: TypeAlias = Sequence[Mapping[str, Any]]


def latencies(rows: Rows) -> Plot:
    """The median and the 95th percentile of each tool's latencies."""
    slowest = sorted((row for row in rows if row["p50_ms"] is not None), key=lambda row: -row["p95_ms"])[:MOST_ROWS]
    names = [row["tool"] for row in slowest]
    about = "; ".join(f"{row['tool']}: p50 {_span(row['p50_ms'])}, {_outcomes(row)}" for row in slowest)

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        for place, row in enumerate(slowest):
            most = axes.barh(place, row["p95_ms"], 0.62, color=tint(place), alpha=0.4)
            half = axes.barh(place, row["p50_ms"], 0.62, color=tint(place))
            canvas.add_tooltip([*most, *half], f"{row['tool']}: {_outcomes(row)}; slowest {_span(row['max_ms'])}")
            label(axes, row["p95_ms"], place, f"{_span(row['p50_ms'])}, {_span(row['p95_ms'])}")
        finish_rows(axes, names, "p50, and p95 pale")

    return Plot("latencies", "How long effects took", about, (HALF, height_of(names)), draw)


def budgets(rows: Rows) -> Plot:
    """The share of its dollar cap that each run has spent and reserved."""
    capped = sorted((row for row in rows if row["usd_cap"]), key=lambda row: -_share(row))[:MOST_ROWS]
    names = [row["run_id"] for row in capped]
    about = "; ".join(f"{row['run_id']}: ${row['usd_spent']:,.4f} of ${row['usd_cap']:,.4f}" for row in capped)

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        for place, row in enumerate(capped):
            spent, held = row["usd_spent"] / row["usd_cap"], row["usd_reserved"] / row["usd_cap"]
            colour = LIGHT["bad"] if spent > 1 else tint(place)
            done = axes.barh(place, spent, 0.62, color=colour)
            aside = axes.barh(place, held, 0.62, left=spent, color=colour, alpha=0.4)
            canvas.add_tooltip(
                [*done, *aside], f"{row['run_id']}: ${row['usd_spent']:,.6f} of ${row['usd_cap']:,.6f} spent"
            )
            label(axes, spent + held, place, f"{spent:.0%} of ${row['usd_cap']:,.2f}")
        finish_rows(axes, names, "spent, and reserved pale")

    return Plot("budgets", "How far budgets are spent", about, (HALF, height_of(names)), draw)


def _share(row: Mapping[str, Any]) -> float:
    return float((row["usd_spent"] + row["usd_reserved"]) / row["usd_cap"])


def _outcomes(row: Mapping[str, Any]) -> str:
    return f"{row['n_confirmed']:,} of {row['n_effects']:,} confirmed"


def _span(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms < 10_000 else f"{ms / 1000:,.1f} s"
