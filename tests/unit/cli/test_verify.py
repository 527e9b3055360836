"""An audit reports every fault and continues after it."""

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from tape.cli.main import run
from tape.compose import open_store
from tape.core.event import Event
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Fault
from tape.core.sequence import AppendRequest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A journal of thirty entries: runs a, b and c in turn."""
    path = tmp_path / "tape.db"
    anyio.run(partial(write, f"sqlite:///{path}", 30))
    return path


@pytest.mark.parametrize(
    ("damage", "reason", "place"),
    [
        ("DELETE FROM tape_journal WHERE global_seq = 5", "position 5 is missing", (5, None, None)),
        ("DELETE FROM tape_journal WHERE global_seq = 5", "seq 2 is missing", (None, "b", 2)),
        ("DELETE FROM tape_journal WHERE global_seq IN (29, 26)", "seqs 9 to 10 are missing", (None, "b", 9)),
        ("DELETE FROM tape_journal WHERE run_id = 'b'", "seqs 1 to 10 are missing", (None, "b", 1)),
        ("UPDATE tape_journal SET payload_json = '7' WHERE global_seq = 5", "its stored bytes", (5, "b", 2)),
        ("UPDATE tape_journal SET payload_json = 7 WHERE global_seq = 5", "its stored bytes", (5, "b", 2)),
        ("UPDATE tape_journal SET run_id = 'x' WHERE global_seq = 5", "its run has no head", (5, "x", 2)),
        ("UPDATE tape_journal SET ts_ms = ts_ms + 9000 WHERE global_seq = 5", "its time is", (6, "c", 2)),
        ("UPDATE tape_journal SET ts_ms = 'x' WHERE global_seq = 5", "its stored bytes", (5, "b", 2)),
        ("UPDATE tape_journal SET epoch = 7 WHERE global_seq = 5", "its epoch is 7", (5, "b", 2)),
        ("UPDATE tape_heads SET last_seq = 12 WHERE run_id = 'b'", "seqs 11 to 12 are missing", (None, "b", 11)),
        ("UPDATE tape_heads SET last_seq = 9 WHERE run_id = 'b'", "its run's head says that seq 9", (29, "b", 10)),
        ("UPDATE tape_heads SET floor = 3 WHERE run_id = 'b'", "its run begins at seq 3", (2, "b", 1)),
        ("UPDATE tape_journal SET global_seq = 31 WHERE global_seq = 5", "it stands before seq 2", (8, "b", 3)),
    ],
)
def test_a_fault_is_named(damage: str, reason: str, place: tuple[object, ...], file: Path) -> None:
    execute(file, damage)

    faults = audit(file)

    assert place in [fault[1:] for fault in faults if fault.reason.startswith(reason)]


def test_every_bad_row_is_named(file: Path) -> None:
    execute(file, "UPDATE tape_journal SET payload_json = '7' WHERE global_seq % 10 = 0")

    faults = audit(file)

    assert [fault.global_seq for fault in faults] == [10, 20, 30]


def test_a_row_that_cannot_be_read_is_named_and_passed(file: Path) -> None:
    execute(file, "UPDATE tape_journal SET payload_json = CAST(x'ff' AS TEXT) WHERE global_seq = 5")
    execute(file, "UPDATE tape_journal SET payload_json = '7' WHERE global_seq = 9")

    faults = audit(file)

    assert [(fault.global_seq, fault.run_id, fault.seq) for fault in faults] == [(5, "b", 2), (9, "c", 3)]


def test_a_row_that_an_index_has_lost_is_named(file: Path) -> None:
    flip_in_index(file, "sqlite_autoindex_tape_journal_1", b"\x01b\x04\x0b")

    faults = audit(file)

    assert (11, "b", 4) in [fault[1:] for fault in faults if fault.reason.startswith("the index does not have it")]


def test_what_was_trimmed_is_not_missed(file: Path) -> None:
    anyio.run(partial(trim, f"sqlite:///{file}"))

    assert audit(file) == []


def test_what_is_appended_and_trimmed_meanwhile_is_no_fault(file: Path) -> None:
    faults = anyio.run(partial(audit_while_it_moves, f"sqlite:///{file}"))

    assert faults == []


def test_a_fault_ends_with_8(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(file, "UPDATE tape_journal SET payload_json = '7' WHERE global_seq = 5")

    code = run(["journal", "verify", "--json", "--store", f"sqlite:///{file}"])

    fault, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert code == 8
    assert (fault["global_seq"], fault["run_id"], fault["seq"]) == (5, "b", 2)
    assert (summary["floor"], summary["head"], summary["faults"], len(summary["terms"])) == (1, 30, 1, 1)


def audit(file: Path) -> list[Fault]:
    return anyio.run(partial(audited, f"sqlite:///{file}"))


async def audited(url: str) -> list[Fault]:
    async with open_store(url) as store:
        return [fault async for page in store.audit.pages() for fault in page.faults]


async def audit_while_it_moves(url: str) -> list[Fault]:
    faults: list[Fault] = []
    async with open_store(url) as store:
        async for page in store.audit.pages():
            faults += page.faults
            await store.journal.append([AppendRequest(events=(event("a", 0), event("d", 0)), opens=True)])
            await store.retention.trim(GlobalSeq((await store.journal.bounds()).floor + 1))
    return faults


async def write(url: str, count: int) -> None:
    async with open_store(url) as store:
        for number in range(count):
            await store.journal.append([AppendRequest(events=(event("abc"[number % 3], number),), opens=True)])


async def trim(url: str) -> None:
    async with open_store(url) as store:
        await store.retention.trim(GlobalSeq(10))
        await store.retention.trim_run(RunId("b"), keep=2)
        await store.retention.trim_run(RunId("c"), keep=0)


def event(run_id: str, number: int) -> Event:
    return Event(run_id=run_id, payload={"n": number})


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def flip_in_index(file: Path, index: str, key: bytes) -> None:
    """Turns the last bit of a key where an index holds it."""
    with closing(sqlite3.connect(file)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    stored = bytearray(file.read_bytes())
    stored[stored.rindex(key, (page - 1) * size, page * size) + len(key) - 1] ^= 1
    file.write_bytes(stored)
