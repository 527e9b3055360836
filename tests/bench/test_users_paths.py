"""The bench of users' paths still works: one row of each area, our side, at the smallest size."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.bench.__main__ import USERS
from tests.bench.compare import Comparison, Row
from tests.bench.report import merged
from tests.bench.users import kept, processes
from tests.bench.users.size import Size
from tests.servers import forked
from tests.servers.forked import Forked

SMALLEST = Size(0.001)
ROWS = {
    "publish": "HTTP, singly, 1 caller, SQLite",
    "stream": "100 events/s, 1 client, SQLite, p50",
    "handlers": "1 worker, SQLite",
    "functions": "a step (an effect), SQLite",
    "outbox": "transactions committed and handled, plain, SQLite",
    "replay": "embedded, SQLite",
    "memory": "a server that has started, SQLite",
    "growth": "bytes on disk of an event published in batches of 100, SQLite",
}


@pytest.fixture(scope="module", autouse=True)
def forks() -> Iterator[None]:
    """Programs start as forks, which costs a tenth of the CPU time; nothing is measured here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "start", fork)
        yield
        kept.release()


def fork(command: Sequence[str], folder: Path, environment: Mapping[str, str], output: int, errors: int) -> Forked:
    """`tape …` or `python -m MODULE …`."""
    module, *arguments = command[2:] if command[0] == sys.executable else ("tape.cli.main", *command[1:])
    return forked.start(module, arguments, folder=folder, environment=environment, output=output, errors=errors)


def rows_of(area: str) -> list[Comparison]:
    rows: list[Comparison] = import_module(f"tests.bench.users.{area}").comparisons(SMALLEST)
    return rows


@pytest.mark.parametrize("area", USERS)
def test_our_side_of_a_row_of_each_area_can_be_measured(area: str) -> None:
    row = next(row for row in rows_of(area) if row.name.startswith(ROWS[area]))

    assert row.ours() > 0


def test_every_row_of_users_paths_has_its_own_name_and_says_how_its_sides_are_run() -> None:
    rows = [row for area in USERS for row in rows_of(area)]

    assert len({(row.area, row.name) for row in rows}) == len(rows)
    assert [row.name for row in rows if row.table != "users" or row.goal or not (row.ours_is and row.peer_is)] == []


def test_a_row_that_is_not_measured_again_keeps_its_conditions() -> None:
    before: list[Row] = [{"table": "users", "area": "a", "name": name, "conditions": {"load": 0.1}} for name in "xy"]
    now: list[Row] = [{"table": "users", "area": "a", "name": "y", "conditions": {"load": 2.0}}]

    rows = merged(before, now)

    assert [row["conditions"] for row in rows] == [{"load": 0.1}, {"load": 2.0}]
