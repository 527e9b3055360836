"""A search is a child process; every way it can end is reported."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tape.core.errors import LimitReached, NotReady, UsageError
from tape.core.search import Search, SearchKind, SearchState
from tape.lake import java
from tape.lake.search import processes as searches
from tape.lake.search.processes import SearchConfig, Searches, open_searches
from tests.deadlines import DEADLINE_S

READ_ORDER = "import sys, json; order = json.loads(sys.stdin.readline()); "
WAITS = "print(json.dumps({'findings': {'through': 9, 'searched': 3}}), flush=True); sys.stdin.read()"


@asynccontextmanager
async def searching(folder: Path, script: str, most_s: float = DEADLINE_S) -> AsyncIterator[Searches]:
    """Searches that are done by a script."""
    command = (sys.executable, "-c", READ_ORDER + script)
    config = SearchConfig(store="", lake=folder, folder=folder, master="local[1]", command=command, most_s=most_s)
    async with open_searches(config) as found:
        yield found


async def ended(found: Searches) -> Search:
    """The dry run of r, once it has ended."""
    return await until(found, lambda search: search.state is not SearchState.RUNNING)


async def until(found: Searches, is_so: Callable[[Search], bool]) -> Search:
    """The dry run of r, once something is so."""
    with anyio.fail_after(DEADLINE_S):
        while not is_so(search := found.of("r")[SearchKind.DRY_RUN]):  # noqa: ASYNC110 - another process does it
            await anyio.sleep(0.01)
    return search


@pytest.mark.parametrize(
    ("script", "state", "reason"),
    [
        ("print('{\"done\": true}')", SearchState.DONE, ""),
        ('print(\'{"refused": "no such thing"}\')', SearchState.FAILED, "no such thing"),
        ('print(\'{"broken": "a secret"}\')', SearchState.FAILED, "Spark could not do it"),
        ("print('a warning')", SearchState.FAILED, "could not be started or read"),
        ('print(\'{"findings": {"through": "x"}}\')', SearchState.FAILED, "could not be started or read"),
        ("raise SystemExit(9)", SearchState.FAILED, "ended from outside"),
    ],
)
async def test_every_end_of_a_process_is_reported(tmp_path: Path, script: str, state: SearchState, reason: str) -> None:
    async with searching(tmp_path, script) as found:
        await found.begin(SearchKind.DRY_RUN, "r")
        search = await ended(found)

        assert search.state is state and reason in search.reason and "secret" not in search.reason
        assert search.ended_at_ms is not None and search.ended_at_ms >= search.started_at_ms


async def test_a_search_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    async with searching(tmp_path, WAITS, most_s=0.2) as found:
        await found.begin(SearchKind.DRY_RUN, "r")

        assert "took more than 0.2 s" in (await ended(found)).reason
        assert (await found.begin(SearchKind.BACKFILL, "r")).state is SearchState.RUNNING


async def test_a_program_that_cannot_be_started_fails_and_the_next_search_runs(tmp_path: Path) -> None:
    config = SearchConfig(
        store="", lake=tmp_path, folder=tmp_path, master="local[1]", command=(str(tmp_path / "none"),)
    )
    async with open_searches(config) as found:
        await found.begin(SearchKind.DRY_RUN, "r")
        assert (await ended(found)).state is SearchState.FAILED
        await found.begin(SearchKind.DRY_RUN, "r")
        assert (await ended(found)).state is SearchState.FAILED


async def test_findings_are_known_before_the_end_and_kept_after_a_cancellation(tmp_path: Path) -> None:
    async with searching(tmp_path, WAITS) as found:
        await found.begin(SearchKind.DRY_RUN, "r")
        await until(found, lambda search: search.findings.searched == 3)
        with pytest.raises(LimitReached):
            await found.begin(SearchKind.BACKFILL, "other")

        search = await found.cancel("r")

        assert (search.state, search.findings.through, search.findings.searched) == (SearchState.CANCELLED, 9, 3)
        with pytest.raises(NotReady):
            await found.cancel("r")


async def test_a_search_cancelled_before_it_starts_never_starts(tmp_path: Path) -> None:
    async with searching(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')") as found:
        await found.begin(SearchKind.DRY_RUN, "r")

        assert (await found.cancel("r")).state is SearchState.CANCELLED
    assert not (tmp_path / "ran").exists()


async def test_no_process_outlives_the_server(tmp_path: Path) -> None:
    says = "import os; print(json.dumps({'findings': {'through': os.getpid(), 'searched': 1}}), flush=True); "
    async with searching(tmp_path, says + "sys.stdin.read()") as found:
        await found.begin(SearchKind.DRY_RUN, "r")
        process = (await until(found, lambda search: search.findings.searched == 1)).findings.through

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_only_so_many_reactions_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "REMEMBERED", 1)
    async with searching(tmp_path, "print('{\"done\": true}')") as found:
        await found.begin(SearchKind.DRY_RUN, "r")
        await ended(found)
        await found.begin(SearchKind.DRY_RUN, "other")

        assert (list(found.of("r")), list(found.of("other"))) == ([], [SearchKind.DRY_RUN])


async def test_without_spark_or_java_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with searching(tmp_path, "") as found:
        monkeypatch.setattr(java, "_candidates", lambda environment, folders: iter(()))
        with pytest.raises(UsageError, match=r"Java 17 or 21.*tape-bus\[spark\]"):
            await found.begin(SearchKind.DRY_RUN, "r")
        monkeypatch.setattr(searches, "find_spec", lambda name: None)
        with pytest.raises(UsageError, match=r"pyspark; install tape-bus\[spark\]"):
            await found.begin(SearchKind.DRY_RUN, "r")

        assert found.of("r") == {}
