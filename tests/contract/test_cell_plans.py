"""A page of a ledger costs the same however many cells the ledger and the run have."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import asyncpg
import pytest

from tape.core.page import ANSWER_BYTES
from tape.store.connection import Query
from tape.store.postgres.migrate import migrate as migrate_postgres
from tape.store.sqlite.migrate import migrate as migrate_sqlite
from tape.store.statements import statements
from tests.conftest import Scale
from tests.contract.test_run_plans import plan, rows_read, steps
from tests.servers.databases import Databases

FEW, MANY = 1_000, 50_000
LISTS = {"a run's": ("run-1/", "run-10"), "all": ("", "\x7f"), "a later page": ("run-1/0000000000000000600", "run-10")}
RUN = "CASE WHEN n % 2 = 0 THEN 'run-1' ELSE 'run-' || n END"
FILL = {
    "sqlite": f"""
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {{count}})
        INSERT INTO tape_cells (ledger, key, version, status, state_json, place)
        SELECT 'effect', {RUN} || '/' || n, 1, CASE WHEN n % 3 = 0 THEN 'failed' ELSE 'confirmed' END, '{{{{}}}}',
               {RUN} || '/' || printf('%019d', n) FROM numbers""",
    "postgres": f"""
        INSERT INTO tape_cells (ledger, key, version, status, state_json, place)
        SELECT 'effect', {RUN} || '/' || n, 1, CASE WHEN n % 3 = 0 THEN 'failed' ELSE 'confirmed' END, '{{{{}}}}',
               {RUN} || '/' || lpad(n::text, 19, '0') FROM generate_series(1, {{count}}) AS n""",
}


def listed(dialect: str, name: str) -> Query:
    low, high = LISTS[name]
    asked = {"ledger": "effect", "status": "failed", "low": low, "high": high, "kind": "", "limit": 50}
    return Query(statements(dialect, "cells.sql")["listed"], {**asked, "max_bytes": ANSWER_BYTES})


@pytest.fixture(scope="module")
def files(scale: Scale) -> Iterator[dict[int, sqlite3.Connection]]:
    """A database with few cells and one with many."""
    found = {count: sqlite3.connect(":memory:", isolation_level=None) for count in (FEW, max(MANY, scale(MANY)))}
    for count, connection in found.items():
        migrate_sqlite(connection)
        connection.execute(FILL["sqlite"].format(count=count))
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
            await connection.execute(FILL["postgres"].format(count=count))
            await connection.execute("ANALYZE tape_cells")
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            found[count] = connection
        yield found


@pytest.mark.parametrize("name", LISTS)
def test_a_page_of_cells_on_sqlite_reads_along_the_index_of_places(
    files: dict[int, sqlite3.Connection], name: str
) -> None:
    query = listed("sqlite", name)

    for connection in files.values():
        found = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", query.parameters)]
        assert any("USING INDEX tape_cells_place (ledger=? AND status=? AND place>? AND place<?)" in p for p in found)


@pytest.mark.parametrize("name", LISTS)
def test_a_page_of_cells_on_sqlite_takes_the_same_steps_whatever_the_size(
    files: dict[int, sqlite3.Connection], name: str
) -> None:
    (_, small), (_, large) = sorted(files.items())

    assert steps(large, listed("sqlite", name)) <= 1.5 * steps(small, listed("sqlite", name))


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_of_cells_on_postgres_is_not_sorted(databases: dict[int, asyncpg.Connection], name: str) -> None:
    for connection in databases.values():
        found = await plan(connection, listed("postgres", name))
        kinds = {node["Node Type"] for node in found}

        assert "tape_cells_place" in {node.get("Index Name") for node in found}
        assert not {"Seq Scan", "Sort", "Incremental Sort", "Bitmap Heap Scan"} & kinds, kinds


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_of_cells_on_postgres_reads_the_same_rows_whatever_the_size(
    databases: dict[int, asyncpg.Connection], name: str
) -> None:
    (_, small), (_, large) = sorted(databases.items())
    query = listed("postgres", name)

    assert await rows_read(large, query) <= 1.5 * await rows_read(small, query)
