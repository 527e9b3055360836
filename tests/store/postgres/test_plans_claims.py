"""Plans of page claims on Postgres: one that was made for small tables still finds rows by key in large ones."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tape.store.postgres.migrate import migrate
from tape.store.postgres.store import BY_KEYS
from tape.store.statements import statements
from tests.servers.databases import Databases
from tests.store.postgres.test_plans_tasks import FILL, ROWS

MATCH = """
SELECT new_version
FROM tape_meta AS m, tape_match_page($1, m.epoch, $2, $3, $4, $5, $6, $7, $8, $4, 'me', 2, 60000)
"""
FINISH = "SELECT tape_finish('me', $1, $2, $3)"
MATERIALIZE = "SELECT tape_materialize_claims(NULL, 9223372036854775807)"
READ = "SELECT relname, seq_tup_read FROM pg_stat_xact_user_tables"
MANY = 100
LITTLE = """
INSERT INTO tape_journal
  SELECT n, n, n, 0, 1, 0, 'little', 'event', 'written', '/a/1', 1, 'e' || n, NULL, '', '', '', '{}', '{}', NULL
    FROM generate_series(-9, 0) n;
INSERT INTO tape_tasks (task_id, reaction_id, shard, source_run_id, source_global_seq, subject, status, created_at_ms)
  SELECT 'little-' || n, 'rule-0', 0, 'little', n, '/a/1', 3, 1 FROM generate_series(-9, 0) n;
UPDATE tape_meta SET archived_through = -10;
"""
RULE, PREFIX = ["rule-1"], ["0123456789abcdef"]


async def work(connection: asyncpg.Connection, seen: int, first: int) -> int:
    """Three matches of which two are claimed, one is finished and one materialized; returns the new version."""
    places = [first, first + 2, first + 3]
    moved = await connection.fetchval(MATCH, seen, first + 3, first, RULE, PREFIX, [3], places, [7])
    await connection.fetchval(FINISH, PREFIX, [1], [first])
    await connection.fetchval(MATERIALIZE)
    await connection.fetchval(FINISH, PREFIX, [1], [first + 2])
    return int(moved)


@pytest.fixture
async def connection(postgres_databases: Databases) -> AsyncIterator[asyncpg.Connection]:
    with postgres_databases.database() as url:
        connection = await asyncpg.connect(url, server_settings=BY_KEYS)
        await migrate(connection)
        yield connection
        await connection.close()


async def test_page_claims_find_their_rows_by_key_however_early_they_were_planned(
    connection: asyncpg.Connection,
) -> None:
    await connection.execute(LITTLE)
    await connection.execute("VACUUM ANALYZE")
    seen = await work(connection, 0, -9)
    await connection.execute(FILL.removesuffix("ANALYZE;\n"))  # which would have it plan anew
    await connection.execute("UPDATE tape_reactions SET max_concurrency = 100")

    async with connection.transaction():
        before = dict(await connection.fetch(READ))
        await work(connection, seen, ROWS - 5)
        after = dict(await connection.fetch(READ))

    assert [table for table, rows in after.items() if rows - before.get(table, 0) > MANY] == []


async def test_one_event_is_appended_by_keys_however_early_that_was_planned(connection: asyncpg.Connection) -> None:
    await connection.execute(LITTLE)
    await connection.execute("INSERT INTO tape_heads (run_id, last_seq, content_type) VALUES ('written', 0, '')")
    await connection.execute("VACUUM ANALYZE")
    early = connection.transaction()
    await early.start()
    assert await append_one(connection, 0) is not None
    await early.rollback()  # what was planned stays planned
    await connection.execute(FILL.removesuffix("ANALYZE;\n"))

    async with connection.transaction():
        before = dict(await connection.fetch(READ))
        appended = [await append_one(connection, ROWS + n) for n in range(4)]
        after = dict(await connection.fetch(READ))

    assert None not in appended
    assert [table for table, rows in after.items() if rows - before.get(table, 0) > MANY] == []


async def append_one(connection: asyncpg.Connection, head: int) -> int | None:
    """The time of the entry, or None if nothing was appended."""
    changes, last = await connection.fetchrow(
        "SELECT changes, last_seq FROM tape_meta, tape_heads WHERE run_id = 'written'"
    )
    event = (
        9 << 40,
        head,
        changes,
        last,
        0,
        "written",
        "event",
        "written",
        "/a/1",
        1,
        "e",
        "",
        "",
        "",
        "{}",
        "{}",
        None,
    )
    ts_ms: int | None = await connection.fetchval(statements("postgres", "append.sql")["append_one"], *event)
    return ts_ms
