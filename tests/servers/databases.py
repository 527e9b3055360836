"""A PostgreSQL server as tests use it: a database for each, cloned from a template that is made once."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import anyio
import asyncpg
from anyio.from_thread import start_blocking_portal

from tests.servers.errors import ServerMissing

Prepare = Callable[[str], Awaitable[object] | None]

KEEP = """
CREATE SCHEMA pristine;
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT schemaname AS s, tablename AS t FROM pg_tables WHERE schemaname IN ('core', 'public') LOOP
    EXECUTE format('CREATE TABLE pristine.%I AS TABLE %I.%I', found.s || '.' || found.t, found.s, found.t);
  END LOOP;
END $$;
"""
EMPTY = """
DO $$ DECLARE found record; BEGIN
  FOR found IN
    SELECT split_part(tablename, '.', 1) AS s, split_part(tablename, '.', 2) AS t, tablename AS kept
    FROM pg_tables WHERE schemaname = 'pristine'
  LOOP
    EXECUTE format('DELETE FROM %I.%I', found.s, found.t);
    EXECUTE format('INSERT INTO %I.%I OVERRIDING SYSTEM VALUE SELECT * FROM pristine.%I', found.s, found.t, found.kept);
  END LOOP;
  PERFORM setval(format('%I.%I', schemaname, sequencename), start_value, false)
  FROM pg_sequences WHERE schemaname IN ('core', 'public');
END $$;
"""


class Databases:
    """Creates and drops databases on the server of a URL, from synchronous and asynchronous tests alike."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._templates: dict[Prepare, str] = {}

    def check(self) -> None:
        """Whether databases can be had there."""
        try:
            self._execute("SELECT 1")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise ServerMissing(f"the server in TAPE_TEST_POSTGRES_URL does not answer: {error}") from error

    def url(self, database: str) -> str:
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    def create_database(self, template: str | None = None) -> str:
        """The URL of a new database, empty or a clone."""
        database = f"tape_{uuid4().hex[:16]}"
        self._execute(f"CREATE DATABASE {database} TEMPLATE {template or 'template0'}")
        return self.url(database)

    def drop_database(self, url: str) -> None:
        """Also while others are connected to it."""
        self._execute(f"DROP DATABASE IF EXISTS {name(url)} WITH (FORCE)")

    def restore_database(self, url: str, backup: str) -> None:
        """Puts the content of another database in its place, while others are connected to it."""
        self.drop_database(url)
        self._execute(f"CREATE DATABASE {name(url)} TEMPLATE {name(backup)}")

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        url = self.create_database(template)
        try:
            yield url
        finally:
            self.drop_database(url)

    def template(self, prepare: Prepare) -> str:
        """The name of a database prepared once; the hook gets its URL and leaves no connection open."""
        if prepare not in self._templates:
            url = self.create_database()
            apart(_call, prepare, url)
            self._templates[prepare] = name(url)
        return self._templates[prepare]

    @contextmanager
    def lasting(self, template: str) -> Iterator[Callable[[], str]]:
        """One clone for many tests: each call empties it again, which costs a hundredth of another clone."""
        with self.database(template) as url, start_blocking_portal() as portal:
            execute(url, KEEP)
            connection = portal.call(asyncpg.connect, url)  # a new one for each test would cost ten times as much

            def emptied() -> str:
                nonlocal connection
                if connection.is_closed():  # a test has killed the server
                    connection = portal.call(asyncpg.connect, url)
                portal.call(connection.execute, EMPTY)
                return url

            yield emptied
            portal.call(connection.terminate)

    def drop_templates(self) -> None:
        while self._templates:
            self.drop_database(self.url(self._templates.popitem()[1]))

    def _execute(self, statement: str) -> None:
        apart(_execute, self._url, statement)


def name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def execute(url: str, statement: str) -> None:
    apart(_execute, url, statement)


def fetch(url: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows a database answers with."""
    return [tuple(row) for row in apart(_fetch, url, statement)]


def apart(function: Callable[..., Awaitable[Any]], *arguments: object) -> Any:
    """Runs it on a loop in a thread of its own, because the caller's may be running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, function, *arguments).result()


async def _call(prepare: Prepare, url: str) -> None:
    result = prepare(url)
    if inspect.isawaitable(result):
        await result


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _fetch(url: str, statement: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()
