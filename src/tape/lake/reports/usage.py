"""Plots of agents: the cost of models, the success of tools, and what forks changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tape.lake.reports.drawing import HALF, LIGHT, WIDE, Canvas, Plot, label, name_rows, short, tint

MOST_ROWS: Final = 12
LEAST_ROWS: Final = 4  # so that a single bar is not too thick
MOST_AGENTS: Final = 6
MOST_CHILDREN: Final = 6
PROSPERITY: Final = "prosperity"
CHILD_TINTS: Final = (3, 4, 2, 7, 5, 6)

Rows: TypeAlias = Sequence[Mapping[str, Any]]


def models(usage: Rows) -> Plot:
    """The cost of each model, and the tokens of its prompts and responses."""
    cost: Counter[str] = Counter()
    prompts: Counter[str] = Counter()
    responses: Counter[str] = Counter()
    for row in usage:
        cost[row["model"]] += row["cost_usd"]
        prompts[row["model"]] += row["prompt_tokens"]
        responses[row["model"]] += row["tokens"]
    names = [name for name, _ in cost.most_common(MOST_ROWS)]
    about = "; ".join(f"{name}: ${cost[name]:,.4f}, {prompts[name] + responses[name]:,} tokens" for name in names)

    def draw(canvas: Canvas) -> None:
        left, right = canvas.axes(2, sharey=True)
        for place, name in enumerate(names):
            bar = left.barh(place, cost[name], 0.62, color=tint(place))
            canvas.add_tooltip(list(bar), f"{name}: ${cost[name]:,.6f}")
            label(left, cost[name], place, f"{_dollars(cost[name])}")
            _draw_tokens(canvas, right, place, prompts[name], responses[name])
        finish_rows(left, names, "dollars")
        finish_rows(right, names, "tokens, prompts pale")

    return Plot("models", "What the models cost", about, (HALF, height_of(names)), draw)


def _draw_tokens(canvas: Canvas, axes: Axes, place: int, prompts: int, responses: int) -> None:
    canvas.add_tooltip(
        list(axes.barh(place, prompts, 0.62, color=tint(place), alpha=0.4)), f"{prompts:,} tokens of prompts"
    )
    canvas.add_tooltip(
        list(axes.barh(place, responses, 0.62, left=prompts, color=tint(place))), f"{responses:,} tokens of responses"
    )
    label(axes, prompts + responses, place, f"{_brief(prompts + responses)}")


def tools(usage: Rows) -> Plot:
    """How often each tool succeeded and failed."""
    done: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for row in usage:
        done[row["tool"]] += row["n_ok"]
        failed[row["tool"]] += row["n_failed"]
    names = [name for name, _ in (done + failed).most_common(MOST_ROWS)]
    about = "; ".join(f"{name}: {done[name]:,} of {done[name] + failed[name]:,} succeeded" for name in names)

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes()
        for place, name in enumerate(names):
            total = done[name] + failed[name]
            ok = axes.barh(place, done[name], 0.62, color=LIGHT["good"])
            bad = axes.barh(place, failed[name], 0.62, left=done[name], color=LIGHT["bad"])
            canvas.add_tooltip([*ok, *bad], f"{name}: {done[name]:,} succeeded, {failed[name]:,} failed")
            label(axes, total, place, f"{done[name] / total:.0%} of {total:,}")
        finish_rows(axes, names, "succeeded green, failed red")

    return Plot("tools", "Success of tools", about, (HALF, height_of(names)), draw)


def prosperity(metrics: Rows, forks: Rows) -> Plot:
    """The metric of each agent in the run with the most forks, and in these forks."""
    values = [row for row in metrics if row["name"] == PROSPERITY]
    parent, children = _largest_family(values, forks)
    agents = sorted({row["agent"] for row in values if row["run_id"] == parent})[:MOST_AGENTS]
    ends = {fork["agent"]: fork for fork in forks if fork["run_id"] in children and fork["agent"]}
    about = "; ".join(
        f"{agent}: {fork['parent_value']:g} became {fork['value']:g} after turn {fork['turn_num']}"
        for agent, fork in ends.items()
    )

    def draw(canvas: Canvas) -> None:
        panels = canvas.axes(max(len(agents), 1), sharey=True, sharex=True)
        for place, (axes, agent) in enumerate(zip(panels, agents, strict=False)):
            _draw_agent(canvas, axes, _lines(values, agent), parent, children)
            axes.set_title(agent, loc="left")
            axes.set_xlabel("turn" if place == 0 else "")
        canvas.figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

    title = f"Prosperity in {parent} and its forks" if children else f"Prosperity in {parent}"
    return Plot("prosperity", title, about or f"prosperity of {', '.join(agents)}", (WIDE, 3.2), draw)


def _largest_family(values: Rows, forks: Rows) -> tuple[str, list[str]]:
    with_values = {row["run_id"] for row in values}
    families: dict[str, list[str]] = {run_id: [] for run_id in with_values}
    for fork in forks:
        if fork["parent_run_id"] in with_values and fork["run_id"] in with_values:
            family = families[fork["parent_run_id"]]
            family.extend({fork["run_id"]} - set(family))
    parent = max(sorted(families), key=lambda run_id: len(families[run_id]), default="")
    return parent, families.get(parent, [])[:MOST_CHILDREN]


def _lines(values: Rows, agent: str) -> dict[str, dict[int, float]]:
    lines: dict[str, dict[int, float]] = {}
    for row in sorted((row for row in values if row["agent"] == agent), key=lambda row: row["turn_num"]):
        lines.setdefault(row["run_id"], {})[row["turn_num"]] = row["value"]
    return lines


def _draw_agent(
    canvas: Canvas, axes: Axes, lines: Mapping[str, Mapping[int, float]], parent: str, children: Sequence[str]
) -> None:
    trunk = lines.get(parent, {})
    axes.plot(list(trunk), list(trunk.values()), color=LIGHT["accent"], linewidth=2.4, label=short(parent))
    for number, child in enumerate(children):
        own = lines.get(child, {})
        colour = tint(CHILD_TINTS[number % len(CHILD_TINTS)])
        turns = _rooted(own, trunk)
        axes.plot(
            list(turns), list(turns.values()), color=colour, linewidth=1.8, linestyle=(0, (4, 1.5)), label=short(child)
        )
        if own:
            _draw_end(canvas, axes, max(own), own, trunk, colour)
    axes.grid(axis="y")
    axes.margins(x=0.12, y=0.12)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _rooted(own: Mapping[int, float], trunk: Mapping[int, float]) -> dict[int, float]:
    """Extends a fork's line to the point where it leaves its parent's."""
    before = [turn for turn in trunk if own and turn < min(own)]
    return {**({before[-1]: trunk[before[-1]]} if before else {}), **own}


def _draw_end(
    canvas: Canvas, axes: Axes, turn: int, own: Mapping[int, float], trunk: Mapping[int, float], colour: str
) -> None:
    (dot,) = axes.plot([turn], [own[turn]], "o", markersize=5, color=colour)
    if turn in trunk:
        difference = own[turn] - trunk[turn]
        canvas.add_tooltip([dot], f"{own[turn]:g} instead of {trunk[turn]:g} after turn {turn}")
        axes.annotate(f"{difference:+g}", (turn, own[turn]), (4, -3), textcoords="offset points", color=colour)


def finish_rows(axes: Axes, names: Sequence[str], unit: str) -> None:
    name_rows(axes, [short(name) for name in names])
    axes.set_ylim(max(len(names), LEAST_ROWS) - 0.4, -0.6)
    axes.margins(x=0.3)
    axes.set_xlabel(unit)
    axes.set_xticks([])
    axes.spines.bottom.set_visible(False)


def height_of(names: Sequence[str]) -> float:
    return 0.6 + 0.3 * max(len(names), LEAST_ROWS)


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def _brief(count: int) -> str:
    return f"{count:,}" if count < 100_000 else f"{count / 1000:,.0f} k"
