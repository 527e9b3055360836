"""Errors of SQLite say what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tape.core.errors import Unavailable
from tape.store.sqlite.worker import translate


def test_a_file_that_may_only_be_read_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "tape.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (n)")

    with (
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader,
        pytest.raises(sqlite3.OperationalError) as refused,
    ):
        reader.execute("PRAGMA journal_mode = WAL")

    error = translate(refused.value)
    assert isinstance(error, Unavailable) and error.outcome == "nothing"
    assert "may only read" in str(error) and "a copy" in str(error)
