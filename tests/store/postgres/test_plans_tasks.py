"""Query plans of reactions and tasks on both databases: ended tasks cost nothing."""

import sqlite3
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tape.store.postgres.migrate import migrate
from tape.store.postgres.named import numbered
from tape.store.sqlite.migrate import migrate as migrate_sqlite
from tape.store.statements import statements
from tests.servers.databases import Databases
from tests.store.postgres.test_plans import literal, plan, scanned

ROWS = 20_000
FILL = f"""
INSERT INTO tape_journal
  SELECT n, n, n, 0, 1, 0, 'run', 'event', 'written', '/a/' || n, 1, 'e' || n, NULL, '', '', '', '{{}}', '{{}}', NULL
    FROM generate_series(1, {ROWS}) n;
INSERT INTO tape_reactions (reaction_id, name, subject_pattern, handler_kind, created_at_ms, state_version)
  SELECT 'rule-' || n, '', '/a/**', 2, n, n FROM generate_series(1, 2000) n;
INSERT INTO tape_limits (reaction_id) SELECT 'rule-' || n FROM generate_series(1, 2000) n;
INSERT INTO tape_tasks (task_id, reaction_id, shard, source_run_id, source_global_seq, subject, status,
                        next_attempt_at_ms, lease_expires_at_ms, created_at_ms, completed_at_ms, first_at_ms)
  SELECT 'task-' || n, 'rule-' || n % 200, 0, 'run', n, '/a/' || n,
         CASE WHEN n % 100 = 0 THEN 1 WHEN n % 100 = 1 THEN 2 WHEN n % 100 = 2 THEN 5 ELSE 3 END, n, n, n, n,
         CASE WHEN n % 200 = 0 THEN n ELSE 0 END
    FROM generate_series(1, {ROWS}) n;
ANALYZE;
"""
BYTES: dict[str, object] = {"max_bytes": 9, "most_bytes": 9}
BEFORE: dict[str, object] = {"before_seq": 9, "before_id": "rule-1", "max_bytes": 9, "is_bare": False}
SMALL = {"tape_match_cursor", "tape_page_claims"}  # one row, and one for each claimed page
CLAIMS = '[{"task_id": "task-1", "owner": "me", "attempt": 1}]'
RULE: dict[str, object] = {"reaction_id": "rule-1"}
RULES: dict[str, object] = {"reaction_ids": '["rule-1", "rule-2"]', "now_ms": 1}
STATEMENTS: list[tuple[str, str, dict[str, object]]] = [
    ("reactions.sql", "found", RULE),
    ("reactions.sql", "states", {"seen": 1999}),
    ("reactions.sql", "reshard", {**RULE, "num_shards": 3}),
    ("reactions.sql", "mark", {**RULE, "paused": "", "deleted": 0}),
    ("tasks.sql", "lock_waiting", {"keys": '[{"reaction_id": "rule-1", "subject": "/a/1"}]'}),
    ("tasks.sql", "end_pending", {**RULE, "last_error": "x", "now_ms": 1}),
    ("tasks.sql", "lock_limits", RULES),
    ("tasks.sql", "leases", RULES),
    ("tasks.sql", "claim", {**RULE, "owner": "me", "now": 9, "lease_ms": 9, "shard": -1, "most": 16, **BYTES}),
    ("tasks.sql", "smallest", {**RULES, "shard": -1, "max_bytes": 9}),
    ("tasks.sql", "extend", {"claims": CLAIMS, "lease_ms": 9, "now_ms": 1}),
    ("tasks.sql", "finish", {"claims": CLAIMS, "now_ms": 1}),
    ("tasks.sql", "lock_claims", {"claims": CLAIMS, "now_ms": 1}),
    ("tasks.sql", "found", {"task_id": "task-1"}),
    ("tasks.sql", "made_of", {**RULE, "global_seq": 5, "subject": "/a/1"}),
    ("tasks.sql", "present", {"matches": '[{"task_id": "task-1", "reaction_id": "rule-1", "global_seq": 1}]'}),
    ("tasks.sql", "listed", {"reaction_id": "", "status": 0, "limit": 200, **BEFORE}),
    ("tasks.sql", "dead", {"reaction_id": "rule-2", "limit": 200}),
    ("tasks.sql", "replay", {"task_ids": '["task-1"]', "now_ms": 1}),
]
NAMES = [f"{file} {name}" for file, name, _ in STATEMENTS]
WAITING: dict[str, object] = {"shard": -1, "most": 16, "now_ms": 1, "reaction_ids": '["rule-1"]'}


@pytest.fixture(scope="module")
async def postgres(postgres_databases: Databases) -> AsyncIterator[asyncpg.Connection]:
    """A database that is large enough for a sequential scan to show in a plan."""
    with postgres_databases.database() as url:
        connection = await asyncpg.connect(url)
        await migrate(connection)
        await connection.execute(FILL)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection
        await connection.close()


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize(("file", "name", "parameters"), STATEMENTS, ids=NAMES)
async def test_postgres_reads_no_table_from_end_to_end(
    postgres: asyncpg.Connection, file: str, name: str, parameters: dict[str, object]
) -> None:
    sql, values = numbered(statements("postgres", file)[name], parameters)

    found = scanned(await plan(postgres, sql, ", ".join(map(literal, values))))

    assert [table for table in found if table not in SMALL] == []


@pytest.mark.parametrize("is_any", [True, False])
async def test_postgres_looks_for_work_without_reading_the_tasks(postgres: asyncpg.Connection, is_any: bool) -> None:
    waiting, values = numbered(statements("postgres", "tasks.sql")["waiting"], {**WAITING, "is_any": is_any})
    exhausted, _ = numbered(statements("postgres", "tasks.sql")["exhausted"], {})

    plans = [await plan(postgres, waiting, ", ".join(map(literal, values))), await plan(postgres, exhausted, "")]

    assert [table for found in plans for table in scanned(found) if table == "tape_tasks"] == []


@pytest.mark.parametrize(("file", "name", "parameters"), STATEMENTS, ids=NAMES)
def test_sqlite_reads_no_table_from_end_to_end(
    sqlite: sqlite3.Connection, file: str, name: str, parameters: dict[str, object]
) -> None:
    steps = sqlite.execute(f"EXPLAIN QUERY PLAN {statements('sqlite', file)[name]}", parameters).fetchall()

    scans = [step[3] for step in steps if step[3].startswith("SCAN")]
    assert [scan for scan in scans if not is_harmless(scan)] == []


@pytest.mark.parametrize("is_any", [True, False])
def test_sqlite_looks_for_work_without_reading_the_tasks(sqlite: sqlite3.Connection, is_any: bool) -> None:
    found = [
        sqlite.execute(f"EXPLAIN QUERY PLAN {statements('sqlite', 'tasks.sql')[name]}", {**WAITING, "is_any": is_any})
        for name in ("waiting", "exhausted")
    ]

    steps = [step[3] for rows in found for step in rows if " t " in step[3]]
    assert steps and all(step.startswith("SEARCH") or "INDEX tape_tasks_leased" in step for step in steps)


def is_harmless(scan: str) -> bool:
    """A JSON list, a page, the one row of the match cursor, or an index in the order asked for."""
    known = (
        "VIRTUAL TABLE",
        "SCAN p",
        "(subquery",
        "tape_match_cursor",
        "sqlite_autoindex_tape_tasks_2",
        "tape_tasks_dead",
    )
    return any(name in scan for name in known)
