"""Sides that take turns: a ratio is the median of the ratios of the turns."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Literal, TypeAlias

Side: TypeAlias = Callable[[], float]
Row: TypeAlias = dict[str, object]
Table: TypeAlias = Literal["users", "parts"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a ratio should be."""

    relation: Literal["<=", ">="]
    bound: float

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}"

    def is_met(self, ratio: float) -> bool:
        return ratio <= self.bound if self.relation == "<=" else ratio >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides, and what their ratio should be; without a goal it is for reading only.

    A row of the table `users` compares whole paths, each side run as its documentation says; it has no goal, and says
    how its sides were run. A row of the table `parts` measures a part of Tape, and a user gets neither of its figures.
    """

    area: str
    name: str
    unit: str
    ours: Side
    peer: Side
    goal: Goal | None = None
    table: Table = "parts"
    ours_is: str = ""
    peer_is: str = ""
    turns: int | None = None  # where the usual number would take too long


def compare(comparisons: Sequence[Comparison], turns: int) -> Iterator[Row]:
    """Every side once a turn, there and back, so that a machine that slows down slows both sides."""
    for own, some in groupby(sorted(comparisons, key=_own_turns), key=_own_turns):
        yield from _compare(list(some), min(own or turns, turns))


def _own_turns(comparison: Comparison) -> int:
    return comparison.turns or 0


def _compare(comparisons: Sequence[Comparison], repetitions: int) -> Iterator[Row]:
    sides = list(dict.fromkeys(side for each in comparisons for side in (each.ours, each.peer)))
    turns = [_turn(sides if number % 2 else sides[::-1]) for number in range(repetitions)]
    for comparison in comparisons:
        yield _result(comparison, [(turn[comparison.ours], turn[comparison.peer]) for turn in turns])


def _turn(sides: Sequence[Side]) -> dict[Side, float]:
    figures = {}
    for side in sides:
        gc.collect()  # nobody pays for what the side before left behind
        figures[side] = side()
    return figures


def _result(comparison: Comparison, turns: Sequence[tuple[float, float]]) -> Row:
    ratios = [ours / peer for ours, peer in turns]
    ratio, goal = median(ratios), comparison.goal
    return {
        "table": comparison.table,
        "area": comparison.area,
        "name": comparison.name,
        "ours": rounded(median(ours for ours, _ in turns)),
        "peer": rounded(median(peer for _, peer in turns)),
        "unit": comparison.unit,
        "ratio": rounded(ratio),
        "spread": [rounded(min(ratios)), rounded(max(ratios))],
        "goal": None if goal is None else str(goal),
        "met": None if goal is None else goal.is_met(ratio),
        **({"ours is": comparison.ours_is, "peer is": comparison.peer_is} if comparison.table == "users" else {}),
        "turns": len(turns),
    }


def rounded(figure: float) -> float:
    """Three digits, which is more than the machine can repeat."""
    return float(f"{figure:.3g}")
