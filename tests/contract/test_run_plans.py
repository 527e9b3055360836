"""A page of runs costs the same however many runs there are: `--scale 50` looks at a million."""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from tape.core.run_query import RunOrder, RunPosition, RunQuery, StatusFilter
from tape.store.connection import Query
from tape.store.postgres.migrate import migrate as migrate_postgres
from tape.store.postgres.named import numbered
from tape.store.run_pages import RunPages
from tape.store.sqlite.migrate import migrate as migrate_sqlite
from tape.store.statements import statements
from tests.conftest import Scale
from tests.contract.many_runs import script
from tests.servers.databases import Databases

LIMIT = 50
FEW, MANY = 1_000, 20_000
LISTS = {
    "everything": RunQuery(),
    "newest": RunQuery(order=RunOrder.NEWEST),
    "oldest": RunQuery(order=RunOrder.OLDEST),
    "by id": RunQuery(order=RunOrder.ID),
    "prefix": RunQuery(prefix="run-7"),
    "open": RunQuery(status=StatusFilter.OPEN),
    "newest open": RunQuery(status=StatusFilter.OPEN, order=RunOrder.NEWEST),
    "complete": RunQuery(status=StatusFilter.COMPLETE),
    "newest complete": RunQuery(status=StatusFilter.COMPLETE, order=RunOrder.NEWEST),
    "app": RunQuery(app="app-1"),
    "oldest of an app": RunQuery(app="app-1", order=RunOrder.OLDEST),
    "complete of an app": RunQuery(app="app-1", status=StatusFilter.COMPLETE, order=RunOrder.NEWEST),
    "label": RunQuery(label="label-1"),
    "parent": RunQuery(parent="run-1"),
    "opened between": RunQuery(opened_after=100, opened_before=900),
    "closed between": RunQuery(closed_after=100, closed_before=900),
}
INDEXES = {
    "everything": "tape_heads_open",
    "newest": "tape_runs_opened",
    "oldest": "tape_runs_opened",
    "by id": "tape_runs_pkey",
    "prefix": "tape_runs_pkey",
    "open": "tape_heads_open",
    "newest open": "tape_heads_open",
    "complete": "tape_runs_closed",
    "newest complete": "tape_runs_ended",
    "app": "tape_runs_app",
    "oldest of an app": "tape_runs_app",
    "complete of an app": "tape_runs_app",
    "label": "tape_runs_label",
    "parent": "tape_runs_parent",
    "opened between": "tape_runs_opened",
    "closed between": "tape_runs_closed",
}  # fmt: skip


def tenth(query: RunQuery, count: int) -> RunPosition:
    """A position nine pages into a list of so many runs, in the middle of the ids."""
    section = query.sections[0]
    after, before = query.bounds("closed" if section.by == "closed" else "opened")
    at = min(before, count) - 9 * LIMIT if section.is_descending else max(after, 1) + 9 * LIMIT
    return RunPosition(0, 0 if section.by == "id" else at, f"{query.prefix or 'run-'}5")


def pages(dialect: str, query: RunQuery, count: int) -> dict[str, Query]:
    parts = RunPages(**statements(dialect, "run_pages.sql"))
    return {
        "first": parts.query(query, query.start(0), LIMIT),
        "tenth": parts.query(query, tenth(query, count), LIMIT),
    }


@pytest.fixture(scope="module")
def files(scale: Scale) -> Iterator[dict[int, sqlite3.Connection]]:
    """A database with few runs and one with many."""
    found = {count: sqlite3.connect(":memory:", isolation_level=None) for count in (FEW, max(MANY, scale(MANY)))}
    for count, connection in found.items():
        migrate_sqlite(connection)
        connection.executescript(script("sqlite", count).removesuffix("ANALYZE;"))
    yield found
    for connection in found.values():
        connection.close()


@pytest.fixture(scope="module")
async def databases(scale: Scale, postgres_databases: Databases) -> AsyncIterator[dict[int, asyncpg.Connection]]:
    """The same on Postgres, where every plan is the one that does not know the parameters."""
    found: dict[int, asyncpg.Connection] = {}
    async with AsyncExitStack() as stack:
        for count in (FEW, max(MANY, scale(MANY))):
            connection = await asyncpg.connect(stack.enter_context(postgres_databases.database()))
            stack.push_async_callback(connection.close)
            await migrate_postgres(connection)
            await connection.execute(script("postgres", count))
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            found[count] = connection
        yield found


@pytest.mark.parametrize("name", LISTS)
def test_a_page_on_sqlite_reads_along_an_index(files: dict[int, sqlite3.Connection], name: str) -> None:
    count, connection = max(files.items())
    index = INDEXES[name].replace("tape_runs_pkey", "sqlite_autoindex_tape_runs_1")

    for query in pages("sqlite", LISTS[name], count).values():
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", query.parameters)]
        assert f"INDEX {index} (" in plan[0], plan
        assert not any("SCAN" in step or "TEMP B-TREE" in step for step in plan), plan


@pytest.mark.parametrize("name", LISTS)
def test_a_page_on_sqlite_takes_the_same_steps_whatever_the_size(
    files: dict[int, sqlite3.Connection], name: str
) -> None:
    (few, small), (many, large) = sorted(files.items())
    less, more = pages("sqlite", LISTS[name], few), pages("sqlite", LISTS[name], many)

    for page in ("first", "tenth"):
        assert steps(large, more[page]) <= 1.5 * steps(small, less[page])


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_on_postgres_reads_along_an_index(databases: dict[int, asyncpg.Connection], name: str) -> None:
    count, connection = max(databases.items())

    for query in pages("postgres", LISTS[name], count).values():
        kinds = [node["Node Type"] for node in await plan(connection, query)]
        indexes = {node.get("Index Name") for node in await plan(connection, query)}
        assert INDEXES[name] in indexes
        assert not {"Seq Scan", "Sort", "Incremental Sort", "Bitmap Heap Scan"} & {*kinds}, kinds


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_on_postgres_reads_the_same_rows_whatever_the_size(
    databases: dict[int, asyncpg.Connection], name: str
) -> None:
    (few, small), (many, large) = sorted(databases.items())
    less, more = pages("postgres", LISTS[name], few), pages("postgres", LISTS[name], many)

    for page in ("first", "tenth"):
        assert await rows_read(large, more[page]) <= 1.5 * await rows_read(small, less[page])


def steps(connection: sqlite3.Connection, query: Query) -> int:
    """How many instructions of SQLite's machine a query takes."""
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1

    connection.set_progress_handler(count, 1)
    rows = connection.execute(query.sql, query.parameters).fetchall()
    connection.set_progress_handler(None, 1)
    assert rows
    return taken


async def rows_read(connection: asyncpg.Connection, query: Query) -> int:
    """How many rows of tables and indexes a query reads, with those that do not match."""
    found = await plan(connection, query, "ANALYZE, TIMING OFF, ")
    assert found[0]["Actual Rows"] > 0
    scans = [node for node in found if "Relation Name" in node]
    return sum(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) for node in scans)


async def plan(connection: asyncpg.Connection, query: Query, options: str = "") -> list[dict[str, Any]]:
    sql, values = numbered(query.sql, query.parameters)
    arguments = ", ".join(str(value) if isinstance(value, int) else f"'{value}'" for value in values)
    await connection.execute(f"PREPARE asked AS {sql}")
    try:
        text = await connection.fetchval(f"EXPLAIN ({options}FORMAT JSON) EXECUTE asked({arguments})")
    finally:
        await connection.execute("DEALLOCATE asked")
    return list(nodes(json.loads(text)[0]["Plan"]))


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)
