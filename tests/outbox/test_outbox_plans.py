"""The cost of a delivery does not grow with the number of delivered rows."""

import json
from typing import Any
from uuid import uuid4

import pytest

from tape.store.caller_connection import in_schema
from tape.store.postgres.named import numbered
from tests.outbox.business_database import BusinessDatabase

DELIVERED = 20_000
WAITING = 2_000
FILL = f"""
INSERT INTO core.outbox (event_type, source, payload, idempotency_key, status, is_fanned_out, channel)
SELECT 'orders.placed', 'orders', '{{}}', gen_random_uuid(), 'delivered', true, 'outbox_gen_0'
FROM generate_series(1, {DELIVERED});
INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, status)
SELECT id, 'test.h', 0, position, 'delivered' FROM core.outbox;
INSERT INTO core.event_handled (handler_name, idempotency_key) SELECT 'test.h', idempotency_key FROM core.outbox;
INSERT INTO core.event_handlers (handler_name, generation, version, channel)
VALUES ('test.h', 0, 'v1', 'outbox_gen_0');
ANALYZE;
"""
WAIT = f"""
INSERT INTO core.outbox (event_type, source, payload, idempotency_key, channel)
SELECT 'orders.placed', 'orders', '{{}}', gen_random_uuid(), 'outbox_gen_0' FROM generate_series(1, {WAITING})
"""
ASKED: dict[str, Any] = {
    "generation": 0,
    "most": 100,
    "ids": json.dumps([str(uuid4())]),
    "taken": "[]",
    "handlers": '["test.h"]',
    "versions": '["v1"]',
    "owner": "me",
    "lease_ms": 1000,
    "min_fan_out": 1,
    "expires": True,
    "claims": "[]",
    "settled": "[]",
}
STATEMENTS = ["mark_fanned_out", "soon", "extend"]
CLAIMED = 10
FEW = 20 * CLAIMED
PAGE = 20
STATUSES = ["", "pending", "delivered", "failed"]
NEWEST = f"SELECT position FROM core.outbox WHERE $1 IN ('', status) ORDER BY position DESC LIMIT {PAGE}"
FILL_SQLITE = """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {many})
INSERT INTO core_outbox (id, event_type, occurred_at, source, payload, idempotency_key, status, position, created_at)
SELECT hex(randomblob(16)), 'orders.placed', '', 'orders', '{{}}', '', s.value,
  (SELECT count(*) FROM core_outbox) + s.key * {many} + n, 0
FROM numbers, json_each('["pending", "in_flight", "failed", "delivered"]') AS s;
"""
READ = """
SELECT relname, seq_scan, CAST(idx_tup_fetch AS bigint) FROM pg_stat_xact_user_tables
WHERE relname IN ('outbox', 'outbox_deliveries', 'event_handled') ORDER BY relname
"""


@pytest.mark.parametrize("name", STATEMENTS)
async def test_no_statement_of_a_delivery_reads_a_whole_table(name: str, postgres: BusinessDatabase) -> None:
    statement, values = numbered(in_schema("postgres", "outbox.sql", "core")[name], ASKED)

    async with postgres.connected() as connection:
        await connection.execute(FILL)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values))

    whole = [line for line in plan.splitlines() if "Seq Scan on" in line and "event_handlers" not in line]
    assert whole == [], plan


async def test_rows_are_found_by_their_ids_along_an_index(postgres: BusinessDatabase) -> None:
    statement, values = numbered(in_schema("postgres", "outbox_table.sql", "core")["rows"], ASKED)

    async with postgres.connected() as connection:
        await connection.execute(FILL)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values))

    assert "outbox_pkey" in plan and "Seq Scan" not in plan, plan


@pytest.mark.parametrize("status", STATUSES)
async def test_a_page_of_rows_reads_no_more_than_it_shows(status: str, postgres: BusinessDatabase) -> None:
    statement, values = numbered(in_schema("postgres", "outbox_table.sql", "core")["page"], page(status))
    async with postgres.connected() as connection:
        await connection.execute(FILL)
        await connection.execute("UPDATE core.outbox SET status = 'failed' WHERE position % 100 = 0")
        await connection.execute(WAIT)
        await connection.execute("UPDATE core.outbox SET generation = position % 3 WHERE status = 'pending'; ANALYZE")
    async with postgres.connected() as connection:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        async with connection.transaction():
            rows = await connection.fetch(statement, *values)
            read = await connection.fetch(READ)
        known = dict(await connection.fetch("SELECT CAST(id AS text), position FROM core.outbox"))
        newest = await connection.fetch(NEWEST, status)

    assert [known[row[0]] for row in rows] == [position for (position,) in newest]
    assert [(scans, fetched < FEW) for name, scans, fetched in read if name == "outbox"] == [(0, True)], read


@pytest.mark.parametrize("status", STATUSES)
async def test_a_page_of_rows_on_sqlite_reads_along_an_index(status: str, sqlite: BusinessDatabase) -> None:
    statement = in_schema("sqlite", "outbox_table.sql", "core")["page"]
    plan: list[str] = []
    taken: list[int] = []
    shown: list[Any] = []

    async with sqlite.connected() as connection:
        for many in (PAGE, 100 * PAGE):
            connection.executescript(FILL_SQLITE.format(many=many))
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", page(status))]
            connection.set_progress_handler(lambda: taken.append(len(shown)), 1)
            shown.append(connection.execute(statement, page(status)).fetchall())
            connection.set_progress_handler(None, 1)

    assert [len(ids) for ids in shown] == [PAGE, PAGE] and any("core_outbox_status (" in step for step in plan), plan
    assert taken.count(1) <= 1.5 * taken.count(0)


async def test_claiming_and_settling_read_what_is_claimed_and_no_more(postgres: BusinessDatabase) -> None:
    async with postgres.connected() as connection:
        await connection.execute(FILL)
        await connection.execute(WAIT)
    async with postgres.connected() as connection:  # what a session has read is counted late, and FILL has read
        rows = await run(connection, "claim", most=CLAIMED)
        async with connection.transaction():
            assert len(await run(connection, "claim", most=CLAIMED)) == CLAIMED
            assert len(await run(connection, "settle", settled=json.dumps([done(row) for row in rows]))) == CLAIMED
            read = await connection.fetch(READ)

    assert [(name, scans, fetched < FEW) for name, scans, fetched in read] == [
        ("event_handled", 0, True),
        ("outbox", 0, True),
        ("outbox_deliveries", 0, True),
    ], read


async def test_a_row_that_is_published_is_in_two_indexes(postgres: BusinessDatabase) -> None:
    async with postgres.connected() as connection:
        await connection.execute(WAIT)
        found = await connection.fetch(
            "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = CAST('core.outbox' AS regclass) AND pg_relation_size(c.oid) > 8192 ORDER BY 1"
        )

    assert [name for (name,) in found] == ["outbox_new", "outbox_pkey"]


def page(status: str) -> dict[str, Any]:
    return {"status": status, "event_type": "", "generation": -1, "before": 1 << 62, "most": PAGE}


async def run(connection: Any, name: str, **asked: Any) -> Any:
    statement, values = numbered(in_schema("postgres", "outbox.sql", "core")[name], ASKED | asked)
    return await connection.fetch(statement, *values)


def done(row: Any) -> dict[str, Any]:
    event_id, handler_name, attempt = row[:3]
    claim = {"event_id": event_id, "handler_name": handler_name, "owner": "me", "attempt": attempt}
    return claim | {"status": "delivered", "error": None, "after_ms": 0, "idempotency_key": event_id}
