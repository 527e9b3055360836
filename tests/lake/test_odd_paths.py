"""Lakes in folders whose names mean something in a URI, a wildcard or a shell, and lakes that are no folder."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from tape.cli.main import run
from tape.compose import open_backend
from tape.core.errors import UsageError
from tape.lake.derived_tables import NAMES as NAMES_OF_TABLES
from tape.lake.lazy_reader import LazyReader
from tape.lake.log import DeltaLog
from tape.settings import Settings
from tests.lake.local_lake import fill, opened, publish
from tests.lake.table_files import write_table
from tests.servers.spark import without_spark

EVERYTHING = "my läke #1 100% x?[a]{b,c}* 'q' \"d\" $x & a,b"
NAMES = [EVERYTHING, "日本", "*", "a;b:c", "$HOME"]
TABLE = {"run_id": "run0", "tool": "t", "n_asked": 1, "n_ok": 1, "n_failed": 0}
ELSEWHERE = ["s3://bucket/lake", "gs://b/l", "hdfs://n:8020/l", "abfss://c@a/l", "file:///tmp/lake"]


async def prepare(url: str, lake: Path) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 30)
        await fill(store, DeltaLog(lake / "journal"), url, 10)


def answers(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_a_lake_works_in_a_folder_of_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    url, lake = f"sqlite:///{tmp_path}/journal.db", tmp_path / "lakes" / name / "lake"
    anyio.run(partial(prepare, url, lake))
    write_table(lake, "tool_usage", [TABLE], 30)
    ask = partial(answers, capsys)
    where = ("--lake", str(lake), "--store", url)

    assert ask("lake", "verify", "--deep", *where) == [{"through": 30, "faults": 0}]
    assert ask("lake", "compact", *where)[0]["after"] == 1 and ask("lake", "vacuum", "--grace", "0s", *where)
    assert ask("lake", "query", "SELECT count(*) AS n FROM journal, tool_usage", *where) == [{"n": 30}]
    assert ask("journal", "archive", "--keep", "0s", *where)[0]["archived"] == 30
    assert len(anyio.run(partial(entries, url, lake))) == 30
    assert [path.name for path in (tmp_path / "lakes").iterdir()] == [name]


async def entries(url: str, lake: Path) -> list[object]:
    async with open_backend(url, lake=lake) as backend:
        return [entry async for entry in backend.journal.stream(follow=False)]


def test_a_report_is_drawn_in_a_folder_of_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, lake = f"sqlite:///{tmp_path}/journal.db", tmp_path / "lakes" / EVERYTHING / "lake"
    anyio.run(partial(prepare, url, lake))
    for name in NAMES_OF_TABLES:
        write_table(lake, name, [TABLE] if name == "tool_usage" else [], 30)

    [report] = answers(capsys, "lake", "report", "--lake", str(lake), "--store", url)

    assert report["page"] == str(lake / "report.html") and (lake / "report.html").is_file()
    assert [path.name for path in (tmp_path / "lakes").iterdir()] == [EVERYTHING]


async def publish_only(url: str, count: int) -> None:
    async with opened(url) as (_, journal):
        await publish(journal, count)


def test_a_data_folder_of_any_name_holds_store_lake_and_sparks_files(tmp_path: Path) -> None:
    data = tmp_path / "my dätä #1 100% x?"
    environment = {**without_spark(dict(os.environ)), "TAPE_DATA": str(data), "TAPE_SPARK_MASTER": "local[1]"}
    anyio.run(partial(publish_only, Settings.read({"TAPE_DATA": str(data)}).store, 5))

    command = [sys.executable, "-m", "tape.cli.main", "lake", "sync"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert DeltaLog(data / "lake" / "journal").snapshot().through == 5
    assert [path.name for path in tmp_path.iterdir()] == [data.name] and (data / "spark" / "spark.log").exists()


@pytest.mark.parametrize("lake", ["s3://bucket/lake", "file:///tmp/lake"])
@pytest.mark.parametrize("command", [("lake", "sync"), ("lake", "query", "SELECT 1"), ("serve",), ("doctor",)])
def test_a_lake_elsewhere_is_refused_by_name_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...], lake: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    store = ("--store", f"sqlite:///{tmp_path}/journal.db")
    option = run([*command, "--lake", lake, *store]) if command[0] != "doctor" else 2
    monkeypatch.setenv("TAPE_LAKE", lake)

    assert (option, run([*command, *store])) == (2, 2)
    assert f"{lake.partition(':')[0]}:// is not supported" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lake", ELSEWHERE)
def test_the_library_refuses_a_lake_elsewhere_as_text_and_as_a_path(lake: str) -> None:
    for refuse in (DeltaLog, LazyReader):
        with pytest.raises(UsageError, match="is not supported"):
            refuse(Path(lake))
    with pytest.raises(UsageError, match="TAPE_DATA is a folder of this machine"):
        Settings.read({"TAPE_DATA": lake})


@pytest.mark.parametrize("name", ["my%20lake", "a%2Fb", "a\\b", "a\nb", "a:b?", "[a]:b"])
def test_a_folder_that_delta_would_take_for_another_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="a lake cannot be in a folder with"):
        DeltaLog(tmp_path / name / "journal")
    assert list(tmp_path.iterdir()) == []
