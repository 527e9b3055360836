"""Brings the schema of a database up to date, step by step."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from tape.core.errors import MissingStore
from tape.core.ids import Epoch
from tape.store.clock import now_ms
from tape.store.statements import migrations, statements


class _Sql(NamedTuple):
    has_journal: str
    has_steps: str
    create_steps: str
    applied: str
    record: str
    begin_epoch: str
    epoch: str


class Migrated(NamedTuple):
    """The journal's epoch, and the steps that were missing."""

    epoch: Epoch
    applied: tuple[str, ...]


def check_journal(path: Path) -> None:
    """Raises MissingStore for a file without a journal, which stays as it is. A file that cannot be read passes.

    Opening a journal changes the mode of its file, so this uses a connection of its own.
    """
    missing = MissingStore(f"in the file {str(path)!r}")
    if not path.exists():
        raise missing
    sql = _Sql(**statements("sqlite", "migrate.sql"))
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as connection:
        if not connection.execute(sql.has_journal).fetchall():
            raise missing


def migrate(connection: sqlite3.Connection) -> Migrated:
    """Applies the missing steps, all or nothing. A newer schema is left as it is, because steps only add.

    Nothing is locked when nothing is missing, so a journal can be opened while another process holds its lock.
    """
    sql = _Sql(**statements("sqlite", "migrate.sql"))
    if _missing(connection, sql):
        return _upgrade(connection, sql)
    (epoch,) = connection.execute(sql.epoch).fetchone()
    return Migrated(epoch, ())


def _upgrade(connection: sqlite3.Connection, sql: _Sql) -> Migrated:
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = tuple(_apply_missing(connection, sql))
        connection.execute(sql.begin_epoch, {"now_ms": _unused_ms()})
        (epoch,) = connection.execute(sql.epoch).fetchone()
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return Migrated(epoch, applied)


def _missing(connection: sqlite3.Connection, sql: _Sql) -> list[tuple[int, str, str]]:
    if not connection.execute(sql.has_steps).fetchall():
        return list(migrations("sqlite"))
    applied = {number for (number,) in connection.execute(sql.applied)}
    return [step for step in migrations("sqlite") if step[0] not in applied]


def _apply_missing(connection: sqlite3.Connection, sql: _Sql) -> Iterator[str]:
    connection.execute(sql.create_steps)
    for number, name, script in _missing(connection, sql):
        for statement in split_script(script):
            connection.execute(statement)
        connection.execute(sql.record, {"number": number, "name": name, "now_ms": now_ms()})
        yield f"{number:04} {name}"


def split_script(script: str) -> Iterator[str]:
    """The statements of a script; sqlite3 would commit before it runs a script as a whole."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


_last_epoch_ms = 0


def _unused_ms() -> int:
    """The time now or a little later, so that two journals of one process never share an epoch."""
    global _last_epoch_ms
    _last_epoch_ms = max(now_ms(), _last_epoch_ms + 1)
    return _last_epoch_ms
