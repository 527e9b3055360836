"""A look at a Postgres server from outside: how it is set, how full it is, and whether it can be listened to."""

from typing import Final, NamedTuple

import anyio
import asyncpg

from tape.store.postgres.errors import LOST, translate
from tape.store.postgres.named import numbered
from tape.store.postgres.qualified import PIN
from tape.store.statements import statements

CONNECT_S: Final = 10.0
ECHO_S: Final = 2.0


class Standbys(NamedTuple):
    """How many standbys are connected: a commit waits for the synchronous ones; of the hidden ones nothing is known."""

    synchronous: int = 0
    asynchronous: int = 0
    hidden: int = 0


class Checkup(NamedTuple):
    """What was found; `hears` is whether a word said on one connection is heard on another."""

    version: int
    settings: dict[str, str]
    sessions: int
    oldest_s: float
    hears: bool
    standbys: Standbys = Standbys()


async def check_up(url: str, listen_url: str | None = None) -> Checkup:
    """Asks a server how it is; a pooler may stand between, and then it does not hear."""
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
    hears = await _hears(connection, listen_url, sql["say"])
    return Checkup(int(settings["server_version_num"]) // 10_000, settings, sessions, oldest_s, hears, standbys)


async def _hears(connection: asyncpg.Connection, listen_url: str, say: str) -> bool:
    listener = await asyncpg.connect(listen_url, timeout=CONNECT_S, statement_cache_size=0)
    try:
        channel, echo = f"tape_echo_{listener.get_server_pid()}", anyio.Event()
        await listener.add_listener(channel, lambda *_: echo.set())
        text, values = numbered(say, {"channel": channel})
        await connection.execute(text, *values)
        with anyio.move_on_after(ECHO_S):
            await echo.wait()
        return echo.is_set()
    finally:
        listener.terminate()
