"""Executes a named statement on a connection of the caller, in the transaction that the caller has begun."""

import inspect
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from tape.core.errors import UsageError
from tape.store.connection import Row
from tape.store.postgres.named import numbered
from tape.store.statements import statements

Dialect: TypeAlias = Literal["postgres", "sqlite"]
Parameters: TypeAlias = Mapping[str, object]
Runner: TypeAlias = Callable[[Any, str, Parameters], Any]

SCHEMA: Final = "core"
_NAME: Final = re.compile(r"(?<!:):([a-z_]+)")
_is_schema = re.compile("[a-z_][a-z0-9_]{0,30}").fullmatch


class Ready:
    """Rows that are there already; a caller may await them or not."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def __await__(self) -> Generator[None, None, list[Row]]:
        yield from ()
        return self.rows


def execute(
    connection: object, file: str, name: str, parameters: Parameters, schema: str = SCHEMA
) -> Awaitable[list[Row]]:
    """The rows of a statement. On a connection without async it has run when this returns."""
    dialect, runner = driver_of(connection)
    sql = in_schema(dialect, file, schema)[name]
    return _answer(runner(connection, sql, parameters))


def _answer(given: object) -> Awaitable[list[Row]]:
    if inspect.isawaitable(given):
        return given
    return Ready([tuple(row) for row in given] if isinstance(given, list) else [])


@cache
def in_schema(dialect: str, file: str, schema: str) -> dict[str, str]:
    """The statements of a file for a schema; on SQLite, which has none, it is the prefix of the tables."""
    check_schema(schema)
    return {name: moved(dialect, text, schema) for name, text in statements(dialect, file).items()}


def moved(dialect: str, text: str, schema: str) -> str:
    return re.sub(r"\bcore\.", f"{schema}.", text) if dialect == "postgres" else re.sub(r"\bcore_", f"{schema}_", text)


def check_schema(schema: str) -> str:
    if not _is_schema(schema):
        raise UsageError(f"a schema is named like billing_events, not {schema!r}")
    return schema


def driver_of(connection: object) -> tuple[Dialect, Runner]:
    """The dialect and the runner of a connection, by its library; imports nothing to find out."""
    for kind in type(connection).__mro__:
        found = _DRIVERS.get(kind.__module__.partition(".")[0])
        if found is not None:
            return found(connection)
    raise UsageError(
        f"an event is published through a connection of psycopg, asyncpg, SQLAlchemy, Django or sqlite3, "
        f"not a {type(connection).__module__}.{type(connection).__name__}"
    )


def _sqlite(connection: Any, sql: str, parameters: Parameters) -> list[Row]:
    found: list[Row] = connection.execute(sql, _asked(sql, parameters)).fetchall()
    return found


async def _asyncpg(connection: Any, sql: str, parameters: Parameters) -> list[Row]:
    text, values = numbered(sql, parameters)
    return [tuple(row) for row in await connection.fetch(text, *values)]


def _psycopg(connection: Any, sql: str, parameters: Parameters) -> Any:
    """Uses a cursor of its own, so that the row factory of the connection does not matter."""
    from psycopg.rows import tuple_row

    cursor = connection.cursor(row_factory=tuple_row) if hasattr(connection, "cursor") else connection
    done = cursor.execute(_percent(sql), _asked(sql, parameters))
    if inspect.isawaitable(done):
        return _psycopg_rows(done)
    return done.fetchall() if done.description else []


async def _psycopg_rows(executing: Awaitable[Any]) -> list[Row]:
    done = await executing
    return list(await done.fetchall()) if done.description else []


def _sqlalchemy(connection: Any, sql: str, parameters: Parameters) -> Any:
    done = connection.execute(_text(sql), _asked(sql, parameters))
    if inspect.isawaitable(done):
        return _sqlalchemy_rows(done)
    return list(done.fetchall()) if done.returns_rows else []


@cache
def _text(sql: str) -> Any:
    """Cached, so that SQLAlchemy compiles it once."""
    from sqlalchemy import text

    return text(sql)


async def _sqlalchemy_rows(executing: Awaitable[Any]) -> list[Row]:
    done = await executing
    return [tuple(row) for row in done.fetchall()] if done.returns_rows else []


def _cursor(connection: Any, sql: str, parameters: Parameters) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(_percent(sql), _asked(sql, parameters))
        return list(cursor.fetchall()) if cursor.description else []


def _of_sqlalchemy(connection: Any) -> tuple[Dialect, Runner]:
    bound = connection.get_bind() if hasattr(connection, "get_bind") else connection
    return _dialect(bound.dialect.name), _sqlalchemy


def _of_django(connection: Any) -> tuple[Dialect, Runner]:
    return _dialect(connection.vendor), _cursor


def _dialect(name: str) -> Dialect:
    known: Mapping[str, Dialect] = {"postgresql": "postgres", "sqlite": "sqlite"}
    if name not in known:
        raise UsageError(f"an outbox lives in Postgres or SQLite, not in {name}")
    return known[name]


_DRIVERS: Final[Mapping[str, Callable[[Any], tuple[Dialect, Runner]]]] = {
    "asyncpg": lambda _: ("postgres", _asyncpg),
    "django": _of_django,
    "psycopg": lambda _: ("postgres", _psycopg),
    "psycopg2": lambda _: ("postgres", _cursor),
    "sqlalchemy": _of_sqlalchemy,
    "sqlite3": lambda _: ("sqlite", _sqlite),
}


def _asked(sql: str, parameters: Parameters) -> dict[str, object]:
    return {name: parameters[name] for name in _names(sql)}


@cache
def _percent(sql: str) -> str:
    return _NAME.sub(r"%(\1)s", sql)


@cache
def _names(sql: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_NAME.findall(sql)))
