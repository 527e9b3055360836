"""Reads the settings and the load of a Postgres server, and whether notifications arrive."""

from functools import partial
from typing import Final, NamedTuple

import asyncpg

from tape.store.postgres.errors import LOST, translate
from tape.store.postgres.listen import Notify, receives_notifications
from tape.store.postgres.qualified import PIN
from tape.store.statements import statements

CONNECT_S: Final = 10.0
ECHO_S: Final = 2.0


class Standbys(NamedTuple):
    """The connected standbys; the role may not see whether the hidden ones are synchronous."""

    synchronous: int = 0
    asynchronous: int = 0
    hidden: int = 0


class Checkup(NamedTuple):
    """The state of a server; `hears` tells whether a notification of one connection arrives on another."""

    version: int
    settings: dict[str, str]
    sessions: int
    oldest_s: float
    hears: bool
    standbys: Standbys = Standbys()


async def check_up(url: str, listen_url: str | None = None) -> Checkup:
    """Reads the state of a server; through a pooler, no notification arrives."""
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_S, statement_cache_size=0)
        try:
            return await _asked(connection, listen_url or url)
        finally:
            connection.terminate()
    except (asyncpg.PostgresError, *LOST) as error:
        raise translate(error) from error


async def _asked(connection: asyncpg.Connection, listen_url: str) -> Checkup:
    sql = statements("postgres", "checkup.sql")
    async with connection.transaction():
        await connection.execute(PIN)
        settings: dict[str, str] = dict(await connection.fetch(sql["settings"]))
        sessions = await connection.fetchval(sql["sessions"])
        oldest_s = await connection.fetchval(sql["oldest"])
        standbys = Standbys(*await connection.fetchrow(sql["standbys"]))
    hears = await _hears(listen_url, partial(connection.execute, "SELECT pg_catalog.pg_notify($1, '')"))
    return Checkup(int(settings["server_version_num"]) // 10_000, settings, sessions, oldest_s, hears, standbys)


async def _hears(listen_url: str, notify: Notify) -> bool:
    listener = await asyncpg.connect(listen_url, timeout=CONNECT_S, statement_cache_size=0)
    try:
        return await receives_notifications(listener, notify, ECHO_S)
    finally:
        listener.terminate()
