"""The treasury of the examples, killed at every request: one wire, one order, one batch."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from tape.compose import aconnect
from tape.core.effect import EffectStatus
from tape.core.run_state import Invocation, RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.conftest import Scale
from tests.process.processes import Child, Processes

POINTS = 4  # at the usual scale; a soak has all of them
AT_ONCE = 4
DONE = [("batch", "wire 700, order 700 at 1.08"), ("order", "700 at 1.08"), ("wire", "700")]


class Point(NamedTuple):
    """Where a worker is killed: before or after its n-th request."""

    step: int
    when: str

    @property
    def app(self) -> str:
        return f"treasury-{self.step}-{self.when}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, processes: Processes) -> str:
    if request.param == "sqlite":
        return processes.url
    found: str = request.getfixturevalue("postgres_url")
    return found


def test_the_treasury_killed_at_any_step_does_everything_once(
    url: str, processes: Processes, tmp_path: Path, scale: Scale
) -> None:
    requests = count_requests(url, processes, tmp_path)
    points = [Point(step, when) for step in range(1, requests + 1) for when in ("before", "after")]

    for some in in_groups(spread(points, scale(POINTS))):
        dying = [start(url, processes, tmp_path, point, "--step", point.step, "--when", point.when) for point in some]
        assert [each.was_killed() for each in dying] == [True] * len(some)
        for successor in [start(url, processes, tmp_path, point) for point in some]:
            successor.finish()

    done = {point: bank_of(tmp_path, point) for point in spread(points, scale(POINTS))}
    assert done == dict.fromkeys(done, DONE)
    assert anyio.run(ends, url, list(done)) == {(RunStatus.TERMINAL, 4, 1, 20_000)}


def count_requests(url: str, processes: Processes, folder: Path) -> int:
    """The number of requests without a crash."""
    count = folder / "count"
    point = Point(0, "never")
    start(url, processes, folder, point, "--count", count).finish()
    assert bank_of(folder, point) == DONE
    return int(count.read_text())


def start(url: str, processes: Processes, folder: Path, point: Point, *options: object) -> Child:
    return processes.start("treasury_agent", url, folder / f"{point.app}.db", point.app, *options)


def bank_of(folder: Path, point: Point) -> list[tuple[str, str]]:
    """The transactions in the bank's own database."""
    with sqlite3.connect(folder / f"{point.app}.db") as books:
        return books.execute("SELECT kind, wanted FROM done ORDER BY kind").fetchall()


async def ends(url: str, points: Sequence[Point]) -> set[tuple[RunStatus, int, int, int]]:
    """The ends of runs: status, confirmed effects, decisions, and spent micro-dollars."""
    async with aconnect(url) as node:
        return {await end(node, Invocation(app=point.app).run_id) for point in points}
    raise AssertionError("a node suppresses no exception")


async def end(node: AsyncNode, run_id: str) -> tuple[RunStatus, int, int, int]:
    run, budget = await node.runs.get(run_id), await node.budgets.get(run_id)
    effects = [each for each in await node.effects.list_all(run_id) if each.status is EffectStatus.CONFIRMED]
    decisions = await node.decisions.list_all(run_id)
    return run.status, len(effects), len(decisions), budget.spent.usd_micros


def spread(points: Sequence[Point], count: int) -> list[Point]:
    """`count` points, evenly spread."""
    if count >= len(points):
        return list(points)
    return [points[round(place * (len(points) - 1) / max(count - 1, 1))] for place in range(count)]


def in_groups(points: Sequence[Point]) -> Iterator[Sequence[Point]]:
    return (points[first : first + AT_ONCE] for first in range(0, len(points), AT_ONCE))
