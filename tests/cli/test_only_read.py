"""A command that only reads, or changes only what is there, never creates a store: a mistyped URL is an error."""

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import asyncpg
import click
import pytest
import redis

from tape.cli.main import COMMANDS, run, tape
from tests.cli.derived import derived_examples

EVENT = "0190b7a8-3f5c-7c1d-9a8e-0f2b4c6d8e01"
READING = (
    "tail",
    "tail --run r1",
    "tail --no-follow",
    "run ls",
    "run show r1",
    "run diff r1 r2",
    "value get n k",
    "value history n k",
    "value watch n k",
    "task ls",
    "task show t1",
    "reaction ls",
    "reaction show rule",
    "reaction explain rule 1",
    "reaction dry-run --subject /a/**",
    "journal verify",
    "lake status",
    "lake sync",
)
CHANGING = (
    "run close r1",
    "run cancel r1",
    "run reap r1",
    "run fork r1 --at 0",
    "run sweep r1 --at 0 --vary food=1",
    "run signal r1 gate",
    "value delete n k",
    "publish r1 1",
    "task replay --all",
    "reaction pause rule",
    "reaction resume rule",
    "reaction rm rule",
    "reaction backfill rule",
    "journal archive --keep 1d",
)
DERIVED = tuple(derived_examples())
OUTBOX = (
    "outbox ls",
    f"outbox show {EVENT}",
    "outbox stats",
    "outbox replay --failed",
    "outbox hand-over 1 --generation 2",
    "outbox retention",
    "outbox partition",
)
# Those that write what a new store may hold, or that read no store; `doctor` has a test of its own.
OTHERS = {
    "check-history",
    "completion",
    "demo",
    "doctor",
    "lake as-of",
    "lake compact",
    "lake query",
    "lake report",
    "lake tables",
    "lake vacuum",
    "lake verify",
    "migrate",
    "operations",
    "outbox contracts catalog",
    "outbox contracts check",
    "outbox migrate",
    "outbox relay",
    "publish",
    "reaction add",
    "run open",
    "serve",
    "value set",
    "work",
}
ON_REDIS = ("tail", "run ls", "run show r1", "run diff r1 r2", "run close r1", "run cancel r1", "run reap r1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the command runs."""
    for name in ("TAPE_STORE", "TAPE_DATA", "TAPE_OUTBOX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ended(command: str, url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run([*shlex.split(command), "--store", url])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("command", [*READING, *CHANGING, *DERIVED, *OUTBOX])
def test_a_missing_file_is_an_error_and_stays_missing(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = ended(command, "sqlite:///data/nope.db", capsys)

    assert code == 2 and "there is no" in error and "nope.db" in error and error.count("\n") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", OUTBOX)
def test_a_file_without_an_outbox_is_an_error_and_stays_as_it_is(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect("shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER)")
    before = Path("shop.db").read_bytes()

    code, error = ended(command, "sqlite:///shop.db", capsys)

    assert code == 4 and "there is no outbox" in error
    assert [path.name for path in folder.iterdir()] == ["shop.db"] and Path("shop.db").read_bytes() == before


@pytest.mark.parametrize("command", [*READING, *CHANGING, *DERIVED[::9]])
def test_a_file_without_a_journal_is_an_error_and_stays_as_it_is(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect("shop.db")) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER)")
    before = Path("shop.db").read_bytes()

    code, error = ended(command, "sqlite:///shop.db", capsys)

    assert code == 2 and "there is no journal" in error and "shop.db" in error
    assert [path.name for path in folder.iterdir()] == ["shop.db"] and Path("shop.db").read_bytes() == before


@pytest.mark.parametrize("command", [*READING, *CHANGING, *DERIVED[::9]])
def test_a_database_without_a_journal_is_an_error_and_stays_empty(
    command: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = ended(command, postgres_url, capsys)

    assert code == 2 and "there is no journal" in error and error.count("\n") == 1
    assert anyio.run(tables, postgres_url) == []


@pytest.mark.parametrize("command", OUTBOX)
def test_a_database_without_an_outbox_stays_empty(
    command: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = ended(command, postgres_url, capsys)

    assert code == 4 and "there is no outbox" in error
    assert anyio.run(tables, postgres_url) == []


@pytest.mark.parametrize("command", ON_REDIS)
def test_a_redis_without_a_journal_is_an_error_and_stays_empty(
    command: str, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = ended(command, redis_url, capsys)

    with redis.Redis.from_url(redis_url) as client:
        assert client.keys() == []
    assert code == 2 and "there is no journal" in error


def test_the_error_names_the_way_to_create_one_and_hides_the_password(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, error = ended("run ls", postgres_url, capsys)

    assert "tape migrate" in error and "password" not in error and "@" not in error


@pytest.mark.parametrize("command", ["run ls", "tail --no-follow", "journal verify", "task ls"])
def test_a_journal_with_nothing_in_it_is_there(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--store", "sqlite:///tape.db"]) == 0

    assert ended(command, "sqlite:///tape.db", capsys) == (0, "")


def test_a_named_store_that_is_missing_fails_a_doctor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--store", "sqlite:///nope.db"])

    out = capsys.readouterr().out
    assert code == 1 and "nope.db does not exist" in out and "tape migrate" in out
    assert list(folder.iterdir()) == []


def test_the_default_store_may_be_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor"])

    assert code == 0 and "does not exist yet; the first write creates it" in capsys.readouterr().out
    assert list(folder.iterdir()) == []


def test_a_doctor_creates_nothing_in_a_database(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--store", postgres_url])

    assert code == 1 and "there is no journal" in capsys.readouterr().out and anyio.run(tables, postgres_url) == []


@pytest.mark.parametrize("command", ["doctor", *READING[:2], *CHANGING[:1], *OUTBOX])
def test_an_empty_file_stays_empty(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.db").touch()

    code, _ = ended(command, "sqlite:///empty.db", capsys)

    assert code in (1, 2, 4)
    assert [path.name for path in folder.iterdir()] == ["empty.db"] and Path("empty.db").stat().st_size == 0


@pytest.mark.parametrize("command", ["doctor", *READING[:2], *CHANGING[:1], *OUTBOX, "publish r 1 --open", "migrate"])
def test_a_folder_is_no_store(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder.db").mkdir()

    code = run([*shlex.split(command), "--store", "sqlite:///folder.db"])

    captured = capsys.readouterr()
    assert code == (1 if command == "doctor" else 2)
    assert "folder.db' is a folder, not a file" in captured.out + captured.err
    assert [path.name for path in folder.iterdir()] == ["folder.db"]


def test_a_doctor_leaves_nothing_beside_a_journal(folder: Path) -> None:
    assert run(["migrate", "--store", "sqlite:///tape.db"]) == 0
    before = {path.name for path in folder.iterdir()}

    assert run(["doctor", "--store", "sqlite:///tape.db"]) == 0

    assert {path.name for path in folder.iterdir()} == before


def test_every_command_is_in_one_of_these_lists() -> None:
    listed = (*READING, *CHANGING, *DERIVED, *OUTBOX, *OTHERS)
    known = {path for path in paths(tape) if any(f"{each} ".startswith(f"{path} ") for each in listed)}

    assert {path.partition(" ")[0] for path in paths(tape)} == set(COMMANDS)
    assert set(paths(tape)) == known


async def tables(url: str) -> list[str]:
    """The relations and schemas that a database has beside those of Postgres."""
    connection = await asyncpg.connect(url)
    try:
        return [
            str(row[0])
            for row in await connection.fetch(
                "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
                "WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
            )
        ]
    finally:
        await connection.close()


def paths(command: click.Command, path: str = "") -> Iterator[str]:
    """All commands with something to do, by their words."""
    if not isinstance(command, click.Group):
        yield path
        return
    with click.Context(command) as context:
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from paths(found, f"{path} {name}".strip())
