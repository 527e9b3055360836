"""Ranges of the journal: which statement reads them, and along which index."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tape.core.errors import Corrupt, UsageError
from tape.core.event import Columns
from tape.lake.partitions import JournalPartition, PartitionReader
from tape.store.ranges import EVERYTHING, RangeSelection, arrow_schema, open_ranges, sql_of
from tape.store.sqlite.migrate import migrate
from tests.lake.journals import delete, fill, numbered, plain, read

SOME = frozenset({"a", "b"})
PARAMETERS = {"after": 1, "through": 9, "run_ids": "[]", "kinds": "[]", "subjects": "[]", "low": "/a", "high": "/b"}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "empty.db", isolation_level=None)
    migrate(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "selection",
    [EVERYTHING, RangeSelection(run_ids=SOME), RangeSelection(kinds=SOME), RangeSelection(span=("/a", "/b"))],
)
def test_a_range_is_read_along_the_positions(connection: sqlite3.Connection, selection: RangeSelection) -> None:
    statement = sql_of("sqlite").selecting(Columns._fields, selection)

    (step, *_) = connection.execute(f"EXPLAIN QUERY PLAN {statement}", PARAMETERS).fetchall()

    assert step[3] == "SEARCH tape_journal USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"


def test_subjects_are_looked_up_within_the_range(connection: sqlite3.Connection) -> None:
    statement = sql_of("sqlite").selecting(["global_seq"], RangeSelection(subjects=SOME))

    steps = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", PARAMETERS)]

    assert any("tape_journal_subject (subject=? AND rowid>? AND rowid<?)" in step for step in steps)


@pytest.mark.parametrize("columns", [["nobody"], ["global_seq", "1); DROP TABLE tape_journal; --"], []])
def test_only_columns_of_an_entry_get_into_a_statement(columns: list[str]) -> None:
    with pytest.raises(UsageError, match="an entry has the columns global_seq, seq"):
        sql_of("sqlite").selecting(columns, EVERYTHING)


def test_columns_come_in_the_requested_order(durable_url: str) -> None:
    fill(durable_url, numbered(10))
    columns = ["subject", "depth", "global_seq", "schema_version"]

    with open_ranges(durable_url) as ranges:
        (batch,) = ranges.read(2, 7, columns, RangeSelection(run_ids=frozenset({"run0", "run1"})))

    wanted = [entry for entry in read(durable_url)[2:7] if entry.run_id != "run2"]
    assert batch.schema == arrow_schema(columns)
    assert [tuple(row.values()) for row in batch.to_pylist()] == plain(wanted, *columns)


def test_a_journal_is_opened_again_and_by_several_at_once(durable_url: str) -> None:
    fill(durable_url, numbered(3))

    with open_ranges(durable_url) as first, open_ranges(durable_url) as second:
        before = first.bounds(), second.bounds()
    fill(durable_url, numbered(2, start=3))
    with open_ranges(durable_url) as third:
        after = third.bounds()

    assert (*before, after) == ((1, 3), (1, 3), (1, 5))


@pytest.mark.parametrize("selection", [RangeSelection(kinds=frozenset()), RangeSelection(span=("/b", "/a"))])
def test_what_contradicts_itself_finds_nothing(durable_url: str, selection: RangeSelection) -> None:
    fill(durable_url, numbered(3))

    with open_ranges(durable_url) as ranges:
        assert list(ranges.read(0, 3, ["global_seq"], selection)) == []


def test_a_selection_narrows_with_each_filter() -> None:
    both = EVERYTHING.among("run_id", SOME).among("run_id", frozenset({"b", "c"})).within("/a", "/c").within("/b", "/d")

    assert both == RangeSelection(run_ids=frozenset({"b"}), span=("/b", "/c"))


@pytest.mark.parametrize(
    "selection",
    [EVERYTHING, RangeSelection(run_ids=frozenset({"run1"})), RangeSelection(span=("/nowhere/", "/nowhere0"))],
)
def test_a_missing_entry_is_found_whatever_is_selected(durable_url: str, selection: RangeSelection) -> None:
    fill(durable_url, numbered(30))
    delete(durable_url, 17)
    reading = PartitionReader(durable_url, arrow_schema(["global_seq"]))
    epoch = reading.extent().epoch

    with pytest.raises(Corrupt, match="10 entries are above 10 and up to 20, but 9 were found"):
        list(reading.read(JournalPartition(10, 20, epoch), selection))

    assert sum(batch.num_rows for batch in reading.read(JournalPartition(17, 30, epoch), selection)) <= 13
