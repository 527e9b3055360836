"""A persister that dies by kill -9 at any moment, and its file."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import anyio
import pytest

from tape import Entry, open_journal
from tape.lake.cold.reading import read_cold, read_runs
from tape.lake.file_lock import is_locked
from tests.conftest import Scale
from tests.process.crew import Crew
from tests.process.saying import SHARED_RUNS

RUN, _ = SHARED_RUNS
KILLS = 8
MOST_BYTES = 20_000


class Told(NamedTuple):
    """What the journal has, what the file has, and what the file had after each kill."""

    said: list[Entry]
    cold: list[Entry]
    after_kills: list[int]
    is_complete: bool


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("persisters")
    with Crew(folder) as crew:
        writer = crew.start("writer", crew.url, crew.log("writer"), "--pause-ms", 5)
        kills = [kill(crew, folder / "cold.duckdb") for _ in range(scale(KILLS))]
        writer.kill()
        anyio.run(end, crew.url)
        crew.start("persister", crew.url, RUN, folder / "cold.duckdb").finish()
        yield Told(
            said=anyio.run(read, crew.url),
            cold=list(read_cold(folder / "cold.duckdb", RUN)),
            after_kills=kills,
            is_complete=read_runs(folder / "cold.duckdb")[0].is_complete,
        )


def test_the_scenario_had_what_it_is_about(told: Told) -> None:
    assert told.after_kills == sorted(told.after_kills)
    assert told.after_kills[0] < told.after_kills[-1] < len(told.said) and len(set(told.after_kills)) > KILLS // 2


def test_nothing_is_missing_and_nothing_is_there_twice(told: Told) -> None:
    assert [entry.seq for entry in told.cold] == list(range(1, len(told.said) + 1))


def test_the_file_holds_the_entries_to_the_byte(told: Told) -> None:
    assert told.cold == told.said


def test_the_last_persister_saw_the_end(told: Told) -> None:
    assert told.is_complete


def kill(crew: Crew, path: Path) -> int:
    """Kills a persister after it has written a little or more; how much the file then has."""
    more = Random().randrange(MOST_BYTES)
    persister = crew.start("persister", crew.url, RUN, path)
    crew.wait(lambda: is_locked(path), "the persister has begun")
    written = size(path)
    crew.wait(lambda: abs(size(path) - written) > more, "the persister writes")
    persister.kill()
    assert not is_locked(path)
    return len(list(read_cold(path, RUN)))


def size(path: Path) -> int:
    files = (path, path.with_name(path.name + ".wal"))
    return sum(file.stat().st_size for file in files if file.exists())


async def end(url: str) -> None:
    async with open_journal(url) as journal:
        await journal.close_run(RUN)


async def read(url: str) -> list[Entry]:
    async with open_journal(url) as journal:
        return [entry async for entry in journal.stream(run_id=RUN)]
