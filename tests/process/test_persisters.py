"""A persister that is killed with SIGKILL at any moment, and its DuckDB file."""

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
from tests.process.processes import Processes
from tests.process.workload import SHARED_RUNS

RUN, _ = SHARED_RUNS
KILLS = 8
MAX_BYTES = 20_000


class Persisted(NamedTuple):
    """The entries of the journal, of the file after each kill, and of the finished file."""

    journal: list[Entry]
    after_kills: list[list[Entry]]
    file: list[Entry]
    is_complete: bool


@pytest.fixture(scope="module")
def persisted(tmp_path_factory: pytest.TempPathFactory, scale: Scale) -> Iterator[Persisted]:
    folder = tmp_path_factory.mktemp("persisters")
    path = folder / "cold.duckdb"
    with Processes(folder) as processes:
        writer = processes.start("writer", processes.url, processes.log("writer"), "--pause-ms", 5)
        after_kills = [read_after_kill(processes, path) for _ in range(scale(KILLS))]
        writer.kill()
        anyio.run(close, processes.url)
        processes.start("persister", processes.url, RUN, path).finish()
        yield Persisted(
            journal=anyio.run(read, processes.url),
            after_kills=after_kills,
            file=list(read_cold(path, RUN)),
            is_complete=read_runs(path)[0].is_complete,
        )


def test_after_each_kill_the_file_is_a_growing_prefix_of_the_run(persisted: Persisted) -> None:
    prefixes = [persisted.journal[: len(entries)] for entries in persisted.after_kills]

    assert persisted.after_kills == prefixes
    assert [len(entries) for entries in prefixes] == sorted(len(entries) for entries in prefixes)


def test_the_next_persister_completes_the_file(persisted: Persisted) -> None:
    assert persisted.file == persisted.journal
    assert persisted.is_complete


def read_after_kill(processes: Processes, path: Path) -> list[Entry]:
    """Kills a persister after it has written some bytes, and reads what the file has then."""
    more = Random().randrange(MAX_BYTES)
    persister = processes.start("persister", processes.url, RUN, path)
    processes.wait(lambda: is_locked(path), "the persister has begun")
    written = size(path)
    processes.wait(lambda: abs(size(path) - written) > more, "the persister writes")
    persister.kill()
    assert not is_locked(path)
    return list(read_cold(path, RUN))


def size(path: Path) -> int:
    files = (path, path.with_name(path.name + ".wal"))
    return sum(file.stat().st_size for file in files if file.exists())


async def close(url: str) -> None:
    async with open_journal(url) as journal:
        await journal.close_run(RUN)


async def read(url: str) -> list[Entry]:
    async with open_journal(url) as journal:
        return [entry async for entry in journal.stream(run_id=RUN)]
