"""Brings the schema of a database up to date, step by step, and refuses a server that is not durable."""

from contextlib import suppress
from typing import Final, NamedTuple

import asyncpg

from tape.core.errors import MissingStore, UsageError
from tape.core.ids import Epoch
from tape.store.clock import now_ms
from tape.store.postgres.named import numbered_names
from tape.store.postgres.owners import check_owners, created
from tape.store.postgres.qualified import PIN, SEARCH_PATH, qualified
from tape.store.statements import migrations, statements

# Two processes that create the table of steps at once both find none; the second fails when the first commits.
BOTH_FIRST: Final = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateSchemaError)


class _Sql(NamedTuple):
    lock: str
    schema: str
    has_steps: str
    foreign: str
    create_steps: str
    applied: str
    record: str
    begin_epoch: str
    epoch: str
    enter: str
    durability: str
    path: str
    database: str


class Migrated(NamedTuple):
    """The epoch of the journal, the steps that were missing, and the schema that has its tables."""

    epoch: Epoch
    applied: tuple[str, ...]
    schema: str


async def migrate(connection: asyncpg.Connection, *, must_exist: bool = False) -> Migrated:
    """Applies the missing steps, all or nothing. A newer schema is left as it is, because steps only add.

    When nothing is missing, nothing is locked, and no right to create anything is needed. The search path of the
    connection is used only to find the schema of the journal.
    """
    schema = await _schema(connection)
    sql = _Sql(*(qualified(numbered_names(text)[0], schema) for text in _Sql(**statements("postgres", "migrate.sql"))))
    try:
        return await _migrated(connection, sql, schema, must_exist)
    except BOTH_FIRST:
        return await _migrated(connection, sql, schema, must_exist)


async def checked_schema(connection: asyncpg.Connection) -> str:
    """The schema of the journal on the connection's search path; refuses tables of another role."""
    schema = await _schema(connection)
    async with connection.transaction():
        await connection.execute(PIN)
        await check_owners(connection, schema, _names())
    return schema


async def _schema(connection: asyncpg.Connection) -> str:
    schema = await connection.fetchval(statements("postgres", "migrate.sql")["schema"])
    if schema is None:
        raise UsageError("the search path of this role names no schema that exists; create one, or name one")
    return str(schema)


def _names() -> frozenset[str]:
    return created(script for _, _, script in migrations("postgres"))


async def _migrated(connection: asyncpg.Connection, sql: _Sql, schema: str, must_exist: bool) -> Migrated:
    async with connection.transaction():
        await connection.execute(PIN)
        has_steps = await connection.fetchval(sql.has_steps, schema)
        await check_owners(connection, schema, _names())
        if must_exist and not (has_steps and await connection.fetch(sql.applied)):
            database = await connection.fetchval(sql.database)
            raise MissingStore(f"in the schema {schema!r} of the database {database!r}")
        if has_steps and not await _missing(connection, sql):
            return Migrated(await connection.fetchval(sql.epoch), (), schema)
        if not has_steps:
            await connection.execute(sql.create_steps)
        await connection.execute(sql.lock)
        applied = await _apply_missing(connection, sql, schema)
        await connection.execute(sql.begin_epoch, now_ms())
        return Migrated(await connection.fetchval(sql.epoch), tuple(applied), schema)


async def _apply_missing(connection: asyncpg.Connection, sql: _Sql, schema: str) -> list[str]:
    missing = await _missing(connection, sql)
    for number, name, script in missing:
        await connection.execute(qualified(script, schema))
        await connection.execute(sql.record, number, name, now_ms())
    return [f"{number:04} {name}" for number, name, _ in missing]


async def _missing(connection: asyncpg.Connection, sql: _Sql) -> list[tuple[int, str, str]]:
    done = {row[0] for row in await connection.fetch(sql.applied)}
    return [step for step in migrations("postgres") if step[0] not in done]


async def check_path(connection: asyncpg.Connection) -> None:
    """Refuses a connection that ignores its search path, as one through a pooler may."""
    path = await connection.fetchval(_Sql(**statements("postgres", "migrate.sql")).path)
    if path != SEARCH_PATH:
        raise UsageError(f"Postgres was not reached directly: the search path is {path}; give its own URL")


async def check_durability(connection: asyncpg.Connection) -> None:
    """Refuses a server that may lose acknowledged writes."""
    sql = _Sql(**statements("postgres", "migrate.sql"))
    fsync, synchronous_commit = await connection.fetchrow(sql.durability)
    if fsync == "on" and synchronous_commit != "off":
        return
    raise UsageError(
        f"Postgres runs with fsync={fsync} and synchronous_commit={synchronous_commit}, which loses acknowledged "
        "events when the machine stops; turn both on, or say --unsafe-durability"
    )


async def enter(connection: asyncpg.Connection, schema: str) -> None:
    """Begins a term if the server was promoted or replaced since the last write."""
    sql = _Sql(**statements("postgres", "migrate.sql"))
    with suppress(asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError):  # a role that may only read
        await connection.execute(qualified(sql.enter, schema))
