"""Query plans on SQLite: no page reads more than it returns."""

import sqlite3
from collections.abc import Iterator

import pytest

from tape.store.sqlite.migrate import migrate
from tape.store.statements import statements


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("file", "name", "parameters", "plan"),
    [
        ("journal.sql", "after", {"after": 1, "limit": 9}, "USING INTEGER PRIMARY KEY (rowid>?)"),
        (
            "journal.sql",
            "count_between",
            {"after": 1, "through": 9},
            "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        ),
        (
            "journal.sql",
            "after_in_range",
            {"after": 1, "through": 9, "low": "/a", "high": "/b", "limit": 9},
            "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        ),
        (
            "journal.sql",
            "after_of_subject",
            {"subject": "/a", "after": 1, "limit": 9},
            "USING INDEX tape_journal_subject (subject=? AND rowid>?)",
        ),
        (
            "journal.sql",
            "run_after",
            {"run_id": "r", "after": 1, "limit": 9},
            "USING INDEX sqlite_autoindex_tape_journal_1 (run_id=? AND seq>?)",
        ),
        ("runs.sql", "found", {"run_id": "r", "now_ms": 1}, "USING INDEX sqlite_autoindex_tape_runs_1 (run_id=?)"),
        ("runs.sql", "silent", {"silence_ms": 1, "now_ms": 1}, "USING INDEX tape_runs_leased"),
        (
            "runs.sql",
            "renew",
            {"run_ids": "[]", "producer": "p", "adopts": True, "now_ms": 1},
            "USING INDEX sqlite_autoindex_tape_runs_1 (run_id=?)",
        ),
        (
            "journal.sql",
            "segments",
            {"segments": '[["a", 1, 3], ["b", 4, 9]]', "limit": 9},
            "USING INTEGER PRIMARY KEY (rowid=?)",
        ),
        (
            "cells.sql",
            "due",
            {"ledger": "l", "status": "s", "through": 9, "after_due": 1, "after_key": "k", "limit": 9},
            "USING INDEX tape_cells_due (ledger=? AND status=? AND (due_at_ms,key)>(?,?) AND due_at_ms<?)",
        ),
        (
            "cells.sql",
            "under",
            {"ledger": "l", "low": "a/", "high": "a0", "limit": 9},
            "USING PRIMARY KEY (ledger=? AND key>? AND key<?)",
        ),
        ("retention.sql", "delete_through", {"through": 9}, "USING INTEGER PRIMARY KEY (rowid<?)"),
        ("retention.sql", "delete_keys_before", {"before_ms": 9}, "INDEX tape_keys_age (ts_ms<?)"),
    ],
)
def test_a_statement_reads_what_it_returns_in_order(
    connection: sqlite3.Connection, file: str, name: str, parameters: dict[str, object], plan: str
) -> None:
    steps = connection.execute(f"EXPLAIN QUERY PLAN {statements('sqlite', file)[name]}", parameters).fetchall()

    assert plan in steps[0][3]
    assert not any("TEMP B-TREE" in step[3] for step in steps)


def test_the_segments_of_a_page_are_found_in_the_index_of_runs(connection: sqlite3.Connection) -> None:
    segments = {"segments": "[]", "limit": 9}

    steps = connection.execute(f"EXPLAIN QUERY PLAN {statements('sqlite', 'journal.sql')['segments']}", segments)

    index = "COVERING INDEX sqlite_autoindex_tape_journal_1 (run_id=? AND seq>? AND seq<?)"
    assert any(index in step[3] for step in steps)


def test_work_that_is_due_is_found_by_who_may_serve_it(connection: sqlite3.Connection) -> None:
    asked = {"ledger": "l", "status": "s", "through": 9, "after_due": 1, "after_key": "k", "limit": 9}
    statement = statements("sqlite", "cells.sql")["due_served"]

    steps = connection.execute(f"EXPLAIN QUERY PLAN {statement}", {**asked, "served": '[["a", "x"]]'}).fetchall()

    plans = [step[3] for step in steps]
    assert any("USING COVERING INDEX tape_cells_served (ledger=? AND status=? AND app=? AND kind=?" in p for p in plans)
    assert any("USING PRIMARY KEY (ledger=? AND key=?)" in plan for plan in plans)
