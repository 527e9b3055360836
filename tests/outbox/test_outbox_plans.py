"""What delivering reads does not grow with what was delivered."""

import json
from typing import Any
from uuid import uuid4

import pytest

from tape.store.foreign import in_schema
from tape.store.postgres.named import numbered
from tests.outbox.places import Place

DELIVERED = 20_000
FILL = f"""
INSERT INTO core.outbox (event_type, source, payload, idempotency_key, status, is_dealt, channel)
SELECT 'orders.placed', 'orders', '{{}}', gen_random_uuid(), 'delivered', true, 'outbox_gen_0'
FROM generate_series(1, {DELIVERED});
INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, status)
SELECT id, 'test.h', 0, position, 'delivered' FROM core.outbox;
INSERT INTO core.event_handled (handler_name, idempotency_key) SELECT 'test.h', idempotency_key FROM core.outbox;
INSERT INTO core.event_handlers (handler_name, generation, channel) VALUES ('test.h', 0, 'outbox_gen_0');
ANALYZE;
"""
ASKED: dict[str, Any] = {
    "generation": 0,
    "most": 100,
    "ids": json.dumps([str(uuid4())]),
    "taken": "[]",
    "handlers": '["test.h"]',
    "owner": "me",
    "lease_ms": 1000,
    "handled": "[]",
    "claims": "[]",
}
STATEMENTS = ["dealt", "bury", "claim", "soon", "extend"]


@pytest.mark.parametrize("name", STATEMENTS)
async def test_no_statement_of_a_delivery_reads_a_whole_table(name: str, postgres: Place) -> None:
    statement, values = numbered(in_schema("postgres", "outbox.sql", "core")[name], ASKED)

    async with postgres.connected() as connection:
        await connection.execute(FILL)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *values))

    whole = [line for line in plan.splitlines() if "Seq Scan on" in line and "event_handlers" not in line]
    assert whole == [], plan


async def test_dealing_reads_no_whole_table_either(postgres: Place) -> None:
    statement, values = numbered(in_schema("postgres", "outbox.sql", "core")["deal"], ASKED)

    async with postgres.connected() as connection:
        await connection.execute(FILL)
    async with postgres.connected() as connection:  # what a session has read is counted late, and FILL has read
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        async with connection.transaction():
            await postgres_row(connection)
            await connection.fetch(statement, *values)
            scans = dict(await connection.fetch("SELECT relname, seq_scan FROM pg_stat_xact_user_tables"))

    assert (scans["outbox"], scans["outbox_deliveries"]) == (0, 0)


async def postgres_row(connection: Any) -> None:
    await connection.execute(
        "INSERT INTO core.outbox (event_type, source, payload, idempotency_key, channel) "
        "VALUES ('orders.placed', 'orders', '{}', gen_random_uuid(), 'outbox_gen_0')"
    )
