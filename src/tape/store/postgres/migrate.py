"""Bringing a database's schema up to date, one numbered step at a time, and refusing one that forgets."""

from typing import NamedTuple

import asyncpg

from tape.core.errors import UsageError
from tape.core.ids import Epoch
from tape.store.clock import now_ms
from tape.store.postgres.named import numbered
from tape.store.statements import migrations, statements


class _Sql(NamedTuple):
    lock: str
    has_steps: str
    create_steps: str
    applied: str
    record: str
    begin_epoch: str
    epoch: str
    durability: str


class Migrated(NamedTuple):
    """The journal's epoch, and the steps that were missing."""

    epoch: Epoch
    applied: tuple[str, ...]


async def migrate(connection: asyncpg.Connection) -> Migrated:
    """Applies what is missing, all or nothing. A schema newer than this code is left as it is: steps only add.

    When nothing is missing, nothing is locked, and no right to create anything is needed.
    """
    sql = _Sql(**statements("postgres", "migrate.sql"))
    if await connection.fetchval(sql.has_steps) and not await _missing(connection, sql):
        return Migrated(await connection.fetchval(sql.epoch), ())
    async with connection.transaction():
        await connection.execute(sql.lock)
        applied = await _apply_missing(connection, sql)
        text, values = numbered(sql.begin_epoch, {"now_ms": now_ms()})
        await connection.execute(text, *values)
        return Migrated(await connection.fetchval(sql.epoch), tuple(applied))


async def _apply_missing(connection: asyncpg.Connection, sql: _Sql) -> list[str]:
    await connection.execute(sql.create_steps)
    missing = await _missing(connection, sql)
    for number, name, script in missing:
        await connection.execute(script)
        text, values = numbered(sql.record, {"number": number, "name": name, "now_ms": now_ms()})
        await connection.execute(text, *values)
    return [f"{number:04} {name}" for number, name, _ in missing]


async def _missing(connection: asyncpg.Connection, sql: _Sql) -> list[tuple[int, str, str]]:
    done = {row[0] for row in await connection.fetch(sql.applied)}
    return [step for step in migrations("postgres") if step[0] not in done]


async def check_durability(connection: asyncpg.Connection) -> None:
    """Refuses a server that acknowledges what it may lose."""
    sql = _Sql(**statements("postgres", "migrate.sql"))
    fsync, synchronous_commit = await connection.fetchrow(sql.durability)
    if fsync == "on" and synchronous_commit != "off":
        return
    raise UsageError(
        f"Postgres runs with fsync={fsync} and synchronous_commit={synchronous_commit}, which loses acknowledged "
        "events when the machine stops; turn both on, or say --unsafe-durability"
    )
