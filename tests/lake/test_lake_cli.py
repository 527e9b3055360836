"""`tape lake` and `tape journal archive`, as they are typed."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from tape.cli.main import run
from tape.lake.compaction import compact
from tape.lake.log import DeltaLog
from tests.lake.hostile_queries import HOSTILE, SURFACES, contents, spelled
from tests.lake.local_lake import fill, opened, publish

Answers = list[dict[str, object]]

WITHOUT_JAVA = """
from functools import partial
from tape.cli.main import main
from tape.lake import java, session
java.PACKAGE = "a_package_that_nobody_made"
session.find_java = partial(java.find_java, folders=())
main()
"""


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPE_DATA", str(tmp_path))
    monkeypatch.setenv("TAPE_STORE", url)


@pytest.fixture
def filled(log: DeltaLog, url: str) -> DeltaLog:
    """A lake of 300 entries, of a journal of 310."""
    anyio.run(partial(fill_and_publish, log, url))
    return log


@pytest.fixture(scope="module")
def hostile_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of 300 entries in a folder with a secret file; nothing may change it."""
    folder = tmp_path_factory.mktemp("hostile")
    anyio.run(partial(fill_and_publish, DeltaLog(folder / "lake" / "journal"), f"sqlite:///{folder}/journal.db"))
    (folder / "secret.csv").write_text("secret\n")
    return folder / "lake"


async def fill_and_publish(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 300)
        await fill(store, log, url, 100)
        await publish(journal, 10)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Answers:
    assert run([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_status_shows_cold_warm_hot_and_the_lag(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    (status,) = asked(capsys, "lake", "status")

    assert status["cold"] == {"floor": 1, "head": 300} and status["warm"] == {"floor": 1, "head": 310}
    assert (status["lag"], status["files"], status["version"]) == (10, 6, 3)
    assert run(["lake", "status"]) == 0 and "1 to 300" in capsys.readouterr().out


def test_without_a_lake_status_shows_everything_as_warm(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    anyio.run(partial(publish_only, url))

    (status,) = asked(capsys, "lake", "status")

    assert (status["lag"], status["files"], status["committed_at_ms"]) == (5, 0, None)


async def publish_only(url: str) -> None:
    async with opened(url) as (_, journal):
        await publish(journal, 5)


def test_a_query_is_answered_over_the_view(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, "lake", "query", "SELECT run_id, count(*) AS n FROM journal GROUP BY ALL ORDER BY 1")

    assert rows == [{"run_id": f"run{n}", "n": 100} for n in range(3)]


def test_as_of_is_what_there_was_at_a_position(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    (then,) = asked(capsys, "lake", "as-of", "150")
    (last,) = asked(capsys, "lake", "as-of", "150", "SELECT max(global_seq) AS g FROM journal")

    assert (then["entries"], then["global_seq"], then["runs"]) == (150, 150, 3) and last == {"g": 150}


def test_as_of_beyond_the_lake_is_refused(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lake", "as-of", "301"]) == 2 and "ends at 300" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["query"], ["as-of", "150"]])
def test_a_query_with_a_lone_surrogate_is_refused(
    filled: DeltaLog, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert run(["lake", *command, "SELECT '\udcff'"]) == 2 and "lone surrogate" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*SURFACES, "as-of/copy-in-a-cte"])
def test_nothing_but_a_select_runs_and_no_file_changes(
    hostile_lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    command = ["as-of", "150"] if name.startswith("as-of/") else ["query"]
    sql = spelled(HOSTILE[name.removeprefix("as-of/")], hostile_lake / "journal")
    monkeypatch.chdir(hostile_lake.parent)
    before = contents(hostile_lake.parent)

    ended = run(["lake", *command, sql, "--lake", str(hostile_lake)])

    assert (ended, capsys.readouterr().out, contents(hostile_lake.parent)) == (2, "", before)


def test_compact_and_vacuum_print_what_they_did(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    (merged,) = asked(capsys, "lake", "compact")
    (young,) = asked(capsys, "lake", "vacuum")
    (deleted,) = asked(capsys, "lake", "vacuum", "--grace", "0s")

    assert merged == {"before": 6, "after": 1, "version": 4} and young["files"] == 0 and deleted["files"] == 6


def test_verify_ends_with_0_when_all_is_well_and_with_8_when_not(
    filled: DeltaLog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, "lake", "verify", "--deep") == [{"through": 300, "faults": 0}]

    (filled.table / filled.snapshot().files[2].path).unlink()

    assert run(["lake", "verify"]) == 8 and "is missing" in capsys.readouterr().out


def test_a_lake_that_is_not_there_is_not_found(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lake", "verify"]) == 4 and "tape lake sync makes one" in capsys.readouterr().err


def test_without_java_a_sync_is_refused_with_the_fix_and_the_lake_stays_as_it_was(
    filled: DeltaLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    before = sorted(filled.table.rglob("*"))

    command = [sys.executable, "-c", WITHOUT_JAVA, "lake", "sync"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode == 2 and "Spark needs Java 17 or 21, and there is none; install a JDK" in ended.stderr
    assert sorted(filled.table.rglob("*")) == before


def test_a_store_that_forgets_has_no_lake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lake", "sync", "--store", "memory://"]) == 2 and "memory://" in capsys.readouterr().err


def test_archive_trims_old_entries_and_tail_still_reads_from_the_beginning(
    filled: DeltaLog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, "journal", "archive", "--keep", "1d") == [{"archived": 0, "floor": 1, "head": 310}]
    assert asked(capsys, "journal", "archive", "--keep", "0s") == [{"archived": 300, "floor": 301, "head": 310}]

    entries = asked(capsys, "tail", "--no-follow")
    of_a_run = asked(capsys, "tail", "--no-follow", "--run", "run1")

    assert [entry["global_seq"] for entry in entries] == list(range(1, 311))
    assert [entry["seq"] for entry in of_a_run] == list(range(1, 104))


def test_archive_without_a_lake_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    anyio.run(partial(publish_only, url))

    assert run(["journal", "archive", "--keep", "0s"]) == 4 and "no lake" in capsys.readouterr().err


def test_a_compacted_lake_answers_as_before(filled: DeltaLog, capsys: pytest.CaptureFixture[str]) -> None:
    question = ("lake", "query", "SELECT sum(crc) AS sum, count(*) AS n FROM journal")
    before = asked(capsys, *question)

    compact(filled)

    assert asked(capsys, *question) == before
