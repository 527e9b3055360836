"""Sides that take turns: a ratio is the median of the ratios of the turns."""

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

Side: TypeAlias = Callable[[], float]
Row: TypeAlias = dict[str, object]


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
    """Two sides, and what their ratio should be; without a goal it is for reading only."""

    area: str
    name: str
    unit: str
    ours: Side
    peer: Side
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A row of `bench/latest.json`, and between which ratios its turns lay when that is known."""

    row: Row
    spread: tuple[float, float] | None = None


def compare(comparisons: Sequence[Comparison], repetitions: int) -> Iterator[Result]:
    """Every side once a turn, there and back, so that a machine that slows down slows both sides."""
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


def _result(comparison: Comparison, turns: Sequence[tuple[float, float]]) -> Result:
    ratios = [ours / peer for ours, peer in turns]
    ratio, goal = median(ratios), comparison.goal
    row: Row = {
        "area": comparison.area,
        "name": comparison.name,
        "ours": rounded(median(ours for ours, _ in turns)),
        "peer": rounded(median(peer for _, peer in turns)),
        "unit": comparison.unit,
        "ratio": rounded(ratio),
        "goal": None if goal is None else str(goal),
        "met": None if goal is None else goal.is_met(ratio),
    }
    return Result(row, (rounded(min(ratios)), rounded(max(ratios))))


def rounded(figure: float) -> float:
    """Three digits, which is more than the machine can repeat."""
    return float(f"{figure:.3g}")
