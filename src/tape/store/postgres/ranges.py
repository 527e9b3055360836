"""Ranges of a Postgres journal: the server's binary COPY, turned into columns by ADBC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

import asyncpg

from tape.core.errors import NotFound, TapeError, Unavailable, UsageError
from tape.core.ports import Bounds
from tape.store.postgres.errors import LOST, error_text
from tape.store.postgres.migrate import checked_schema
from tape.store.postgres.qualified import SEARCH_PATH, qualified
from tape.store.ranges import BATCH_BYTES, Extent, Ranges, RangeSelection, Sql, arrow_schema, sql_of
from tape.store.statements import statements

if TYPE_CHECKING:
    import pyarrow as pa

CONNECT_S: Final = 10.0
MAX_DATABASES: Final = 8


class PostgresRanges:
    """A connection that only reads."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection = connection
        self._sql = Sql(*(qualified(sql, schema) for sql in sql_of("postgres")))
        self._set_range = statements("postgres", "lake.sql")["set_range"]

    def bounds(self) -> Bounds:
        with self._connection.cursor() as cursor:
            cursor.execute(self._sql.bounds)
            return Bounds(*cursor.fetchone())

    def extent(self) -> Extent:
        with self._connection.cursor() as cursor:
            cursor.execute(self._sql.extent)
            return Extent.of(cursor.fetchall())

    def count(self, after: int, through: int) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute(self._set_range, (json.dumps({"after": after, "through": through}),))
            cursor.execute(self._sql.count_between)
            (rows,) = cursor.fetchone()
            return int(rows)

    def read(
        self, after: int, through: int, columns: Sequence[str], selection: RangeSelection
    ) -> Iterator[pa.RecordBatch]:
        if selection.is_nothing:
            return
        schema = arrow_schema(columns)
        with self._connection.cursor() as cursor:
            cursor.execute(self._set_range, (json.dumps(_values(after, through, selection)),))
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            cursor.execute(self._sql.selecting(columns, selection))
            for batch in cursor.fetch_record_batch():
                yield batch.cast(schema)  # a whole column at once, where the server would do it row by row


@contextmanager
def open_postgres(url: str) -> Iterator[Ranges]:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise UsageError("this needs the package adbc-driver-postgresql; install tape-bus[spark]") from error
    try:
        with _connected(url) as connection:
            yield PostgresRanges(connection, _schema(url))
    except dbapi.Error as error:
        raise _translated(str(error), url) from None  # its cause may contain the password


class ThreadDatabase:
    """The ADBC database of one thread; it stays open when its connections are closed.

    ADBC counts connections without a lock, so threads do not share one.
    """

    def __init__(self, url: str, thread: int) -> None:
        from adbc_driver_postgresql import connect

        self.database = connect(_pinned(url))

    def close(self) -> None:
        return


def _connected(url: str) -> Any:
    from adbc_driver_manager import AdbcConnection
    from adbc_driver_postgresql import dbapi

    own = _database(url, get_ident())
    return dbapi.Connection(own, AdbcConnection(own.database), autocommit=True)


# To open a database ADBC connects and reads all its types: four fifths of the time until the first query.
_database = lru_cache(maxsize=MAX_DATABASES)(ThreadDatabase)


def _pinned(url: str) -> str:
    """The same URL with our search path: ADBC looks types up by bare names as it connects."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    options = f"{query.get('options', '')} -csearch_path={SEARCH_PATH.replace(' ', '')}".strip()
    return parts._replace(query=urlencode({**query, "options": options}, quote_via=quote)).geturl()


def _schema(url: str) -> str:
    """The schema of the journal, looked up as a store does; in a thread, because the caller may run a loop."""
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _looked_up(url)).result()
    except (asyncpg.PostgresError, *LOST) as error:
        raise _translated(error_text(error), url) from None


async def _looked_up(url: str) -> str:
    connection = await asyncpg.connect(url, timeout=CONNECT_S)
    try:
        return await checked_schema(connection)
    finally:
        connection.terminate()


def _values(after: int, through: int, selection: RangeSelection) -> dict[str, object]:
    low, high = selection.span or ("", "")
    wanted = {"run_ids": selection.run_ids, "kinds": selection.kinds, "subjects": selection.subjects}
    return {"after": after, "through": through, "low": low, "high": high} | {
        name: sorted(values or ()) for name, values in wanted.items()
    }


def _translated(reason: str, url: str) -> TapeError:
    if 'tape_meta" does not exist' in reason:
        return NotFound("there is no journal in this database")
    for secret in _secrets(url):
        reason = reason.replace(secret, "…")
    return Unavailable(f"Postgres did not answer ({' '.join(reason.split())})")


def _secrets(url: str) -> Iterator[str]:
    """The passwords in a URL, in each of their spellings: a driver may quote the URL in its error."""
    parts = urlsplit(url)
    for secret in (parts.password, *parse_qs(parts.query).get("password", ())):
        yield from filter(None, {secret or "", unquote(secret or ""), quote(secret or "", safe="")})
