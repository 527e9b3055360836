"""The page *Internals* shows what the running program does, and no request path grows unnoticed."""

import os
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.internals.page import TITLES, RecordedPath, read, write
from tests.internals.recorder import Function
from tests.internals.recording import record

BUDGET = tomllib.loads((Path(__file__).parent / "budget.toml").read_text())
WRITES = "WRITE_INTERNALS" in os.environ  # `make internals`
AGAIN = 3
NOTHING: dict[str, list[str]] = {"not listed": [], "not called": []}


@pytest.mark.parametrize("name", TITLES)
def test_the_page_lists_the_functions_that_a_request_path_calls(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    master = {"TAPE_SPARK_MASTER": request.getfixturevalue("spark_url")} if name == "journal-to-lake" else {}
    recorded = record(name, store(name, request, tmp_path), tmp_path, master)
    if WRITES:
        write({name: recorded})

    listed, _ = read(name)
    for number in range(AGAIN):  # where the machine is busy, what comes later may come early each time
        if not any(changes(recorded, listed).values()):
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        recorded += record(name, store(name, request, folder), folder, master)

    assert changes(recorded, listed) == NOTHING, "run `make internals` and look at the difference"


@pytest.mark.parametrize("name", TITLES)
def test_a_request_path_stays_within_its_budget(name: str) -> None:
    listed, stated = read(name)
    budget = BUDGET[name]

    assert (stated.functions, stated.files) == (len(listed), len({each.file for each in listed}))
    assert {what: (number, budget[what]) for what, number in asdict(stated).items() if number > budget[what]} == {}


def store(name: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """SQLite, but for the path whose figures are those of Postgres."""
    if name == "publish-to-handler":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{folder}/tape.db"


def changes(recorded: RecordedPath, listed: set[Function]) -> dict[str, list[str]]:
    return {"not listed": names(recorded.always - listed), "not called": names(listed - recorded.ever)}


def names(functions: set[Function]) -> list[str]:
    return sorted(f"{function.file}: {function.name}" for function in functions)
