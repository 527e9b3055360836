"""Bringing a database's schema up to date, one numbered step at a time, and refusing one that forgets."""

import time
from typing import NamedTuple

import asyncpg

from tape.core.errors import UsageError
from tape.core.ids import Epoch
from tape.store.postgres.named import numbered
from tape.store.statements import migrations, statements


class _Sql(NamedTuple):
    lock: str
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
    """Applies what is missing, all or nothing. A schema newer than this code is left as it is: steps only add."""
    sql = _Sql(**statements("postgres", "migrate.sql"))
    async with connection.transaction():
        await connection.execute(sql.lock)
        applied = await _apply_missing(connection, sql)
        text, values = numbered(sql.begin_epoch, {"now_ms": _now_ms()})
        await connection.execute(text, *values)
        return Migrated(await connection.fetchval(sql.epoch), tuple(applied))


async def _apply_missing(connection: asyncpg.Connection, sql: _Sql) -> list[str]:
    await connection.execute(sql.create_steps)
    done = {row[0] for row in await connection.fetch(sql.applied)}
    missing = [step for step in migrations("postgres") if step[0] not in done]
    for number, name, script in missing:
        await connection.execute(script)
        text, values = numbered(sql.record, {"number": number, "name": name, "now_ms": _now_ms()})
        await connection.execute(text, *values)
    return [f"{number:04} {name}" for number, name, _ in missing]


async def check_durability(connection: asyncpg.Connection, unsafe_durability: bool) -> None:
    """Refuses a server that acknowledges what it may lose, unless that was asked for."""
    sql = _Sql(**statements("postgres", "migrate.sql"))
    fsync, synchronous_commit = await connection.fetchrow(sql.durability)
    if unsafe_durability or (fsync == "on" and synchronous_commit != "off"):
        return
    raise UsageError(
        f"Postgres runs with fsync={fsync} and synchronous_commit={synchronous_commit}, which loses acknowledged "
        "events when the machine stops; turn both on, or say --unsafe-durability"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
