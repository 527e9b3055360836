"""The two stores of every row, empty and on the disk, and how many events they hold."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

import asyncpg

from tests.bench.servers import postgres
from tests.bench.workload import FOLDER

Store: TypeAlias = Literal["SQLite", "Postgres"]
STORES: tuple[Store, ...] = ("SQLite", "Postgres")

# `max_connections` is 200; everything else that matters is as PostgreSQL ships it, fsync and synchronous_commit too.
POSTGRES = "PostgreSQL with its default settings"


@contextmanager
def empty_store(store: Store) -> Iterator[str]:
    """The URL of an empty database, gone afterwards."""
    if store == "Postgres":
        with postgres().database() as url:
            yield url
        return
    FOLDER.mkdir(exist_ok=True)  # not the system's folder for temporary files, which may be memory
    with TemporaryDirectory(prefix=".scratch-", dir=FOLDER) as folder:
        yield f"sqlite:///{folder}/bench.db"


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def query_number(url: str, query: str) -> int:
    """The one number that a query returns; no value is 0."""
    if url.startswith("sqlite:"):
        connection = sqlite3.connect(sqlite_path(url))
        try:
            return int(connection.execute(query).fetchone()[0] or 0)
        finally:
            connection.close()
    return asyncio.run(_query_number(url, query))


async def _query_number(url: str, query: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(query) or 0)
    finally:
        await connection.close()
