"""Query plans on Postgres: no page reads more than it returns, whatever the parameters."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

import asyncpg
import pytest

from tape.core.event import Event
from tape.core.fork import Fork
from tape.core.fork_request import fork_request
from tape.core.ids import RunId, Seq
from tape.core.sequence import AppendRequest, CellChange, CellId
from tape.store.postgres.call import AppendCall, one_event
from tape.store.postgres.migrate import migrate
from tape.store.postgres.named import numbered
from tape.store.statements import statements
from tests.servers.databases import Databases

ROWS = 20_000
LAST = Seq(1_000)
OPEN = 64
FILL = f"""
INSERT INTO tape_journal (global_seq, seq, ts_ms, epoch, crc, run_id, kind, type, subject, event_id, payload_json)
  SELECT n, n / 64 + 1, n, 1, 0, 'run-' || n % 64, 'event', 'message', '/message/run-' || n % 64, n::text, '{{}}'
    FROM generate_series(1, {ROWS}) n;
INSERT INTO tape_heads (run_id, last_seq, closed_seq)
  SELECT 'run-' || n, {LAST}, CASE WHEN n > {OPEN} THEN {LAST} END FROM generate_series(1, {ROWS}) n;
INSERT INTO tape_runs (run_id, opened_at, parent_run_id, closed_at, producer, renewed_at)
  SELECT 'run-' || n, n, 'run-' || n / 2, CASE WHEN n > {OPEN} THEN n END,
         CASE WHEN n < {OPEN} THEN 'p' || n % 4 END, CASE WHEN n < {OPEN} THEN n END
    FROM generate_series(1, {ROWS}) n;
INSERT INTO tape_keys (key, digest, first_seq, seqs_json, ts_ms)
  SELECT 'key-' || n, '', n, '[]', n FROM generate_series(1, {ROWS}) n;
INSERT INTO tape_cells (ledger, key, version, status, due_at_ms, state_json, app, kind)
  SELECT 'ledger', 'key-' || n, 1, 'open', CASE WHEN n % 2 = 0 THEN n END, '{{}}', 'app-' || n % 3, 'kind-' || n % 9
    FROM generate_series(1, {ROWS}) n;
ANALYZE;
"""

RUN: dict[str, object] = {"run_id": "run-1"}
RUNS: dict[str, object] = {"run_ids": '["run-1"]'}
READS: list[tuple[str, str, dict[str, object]]] = [
    ("journal.sql", "bounds", {}),
    ("journal.sql", "after", {"after": 1, "limit": 512}),
    ("journal.sql", "after_in_range", {"after": 1, "through": 9, "low": "/m", "high": "/n", "limit": 512}),
    ("journal.sql", "after_of_subject", {"subject": "/message/run-1", "after": 1, "limit": 512}),
    ("journal.sql", "count_between", {"after": 1, "through": 999}),
    ("journal.sql", "places_between", {"after": 1, "through": 999, "limit": 999}),
    ("journal.sql", "run_after", {**RUN, "after": 1, "limit": 512}),
    ("journal.sql", "run_head", RUN),
    ("journal.sql", "segments", {"segments": '[["run-1", 1, 3], ["run-2", 4, 9]]', "limit": 512}),
    ("journal.sql", "floors", {"run_ids": '["run-1", "run-2"]'}),
    ("audit.sql", "after", {"after": 1, "through": 999, "limit": 512}),
    ("audit.sql", "place", {"global_seq": 1}),
    ("audit.sql", "runs_after", {**RUN, "seq": 1, "limit": 5000}),
    ("runs.sql", "head", RUN),
    ("runs.sql", "heads", RUNS),
    ("runs.sql", "children", RUN),
    ("runs.sql", "lock_run", RUN),
    ("runs.sql", "close_heads", RUNS),
    ("runs.sql", "close_runs", RUNS),
    ("runs.sql", "reap_run", RUN),
    ("runs.sql", "lock_runs", RUNS),
    ("runs.sql", "renew", {**RUNS, "producer": "p1", "adopts": True}),
    ("runs.sql", "silent", {"silence_ms": 66_000}),
    ("runs.sql", "lock_silent", {"silence_ms": 66_000}),
    ("runs.sql", "found", RUN),
    ("cells.sql", "read", {"ids": '[["ledger", "key-1"]]'}),
    (
        "cells.sql",
        "due",
        {"ledger": "ledger", "status": "open", "through": 9, "after_due": 1, "after_key": "key-1", "limit": 200},
    ),
    (
        "cells.sql",
        "due_served",
        {
            "ledger": "ledger",
            "status": "open",
            "through": 9,
            "after_due": 1,
            "after_key": "key-1",
            "limit": 200,
            "served": '[["app-1", "kind-1"], ["", "kind-1"]]',
        },
    ),
    ("cells.sql", "under", {"ledger": "ledger", "low": "key-1", "high": "key-2", "limit": 200}),
    ("retention.sql", "raise_floor", {"through": 9}),
    ("retention.sql", "raise_run_floors", {"through": 9}),
    ("retention.sql", "delete_through", {"through": 9}),
    ("retention.sql", "last_gone", {**RUN, "floor": 9}),
    ("retention.sql", "raise_run_floor", {**RUN, "floor": 9}),
    ("retention.sql", "delete_run_below", {**RUN, "floor": 9}),
    ("retention.sql", "delete_keys_before", {"before_ms": 9}),
]
EXPLAIN_NESTED = """
LOAD 'auto_explain';
SET auto_explain.log_format = json;
SET auto_explain.log_level = notice;
SET auto_explain.log_nested_statements = on;
SET auto_explain.log_min_duration = 0;
"""
PLAIN = Event(run_id="run-1", payload=1)
CAUSED = Event(run_id="run-2", payload=1, cause=7)
CELL = CellChange(id=CellId("ledger", "new"), seen=0, status="open", state_json="{}")
STALE = CellChange(id=CellId("ledger", "key-1"), seen=0, status="open", state_json="{}")
GUARDED = AppendRequest(events=(CAUSED,), cells=(CELL,), key="new", expected_seq=LAST)
APPENDED = [
    [AppendRequest(events=(PLAIN,))],
    [GUARDED],
    [GUARDED, AppendRequest(events=(PLAIN,), cells=(STALE,))],
    [fork_request(RunId("forked"), Fork(RunId("run-1"), Seq(7)), mutation=1)],
]
APPENDS = {"begin": "", "between": "1, 9", "written": "19990, ARRAY['7']"}


@pytest.fixture(scope="module")
async def connection(postgres_databases: Databases) -> AsyncIterator[asyncpg.Connection]:
    """A database that is large enough for a sequential scan to show in a plan."""
    with postgres_databases.database() as url:
        connection = await asyncpg.connect(url)
        await migrate(connection)
        await connection.execute(FILL)
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection
        await connection.close()


@pytest.mark.parametrize(("file", "name", "parameters"), READS, ids=[f"{read[0]} {read[1]}" for read in READS])
async def test_a_statement_reads_no_table_from_end_to_end(
    connection: asyncpg.Connection, file: str, name: str, parameters: dict[str, object]
) -> None:
    sql, values = numbered(statements("postgres", file)[name], parameters)

    assert scanned(await plan(connection, sql, ", ".join(map(literal, values)))) == []


async def test_positions_are_counted_in_the_index_alone(connection: asyncpg.Connection) -> None:
    sql, values = numbered(statements("postgres", "journal.sql")["count_between"], {"after": 1, "through": 9_999})
    await connection.execute("VACUUM tape_journal")

    (found,) = await plan(connection, sql, ", ".join(map(literal, values)))

    assert "Index Only Scan" in {node["Node Type"] for node in nodes(found["Plan"])}


async def test_cells_that_are_due_are_found_by_their_time(connection: asyncpg.Connection) -> None:
    asked = {"ledger": "ledger", "status": "open", "through": 9, "after_due": 1, "after_key": "key-1", "limit": 200}
    sql, values = numbered(statements("postgres", "cells.sql")["due"], asked)

    (found,) = await plan(connection, sql, ", ".join(map(literal, values)))

    assert "tape_cells_due" in {node.get("Index Name") for node in nodes(found["Plan"])}
    assert "Sort" not in {node["Node Type"] for node in nodes(found["Plan"])}


@pytest.mark.parametrize(("name", "arguments"), APPENDS.items())
async def test_what_surrounds_an_append_reads_no_table_from_end_to_end(
    connection: asyncpg.Connection, name: str, arguments: str
) -> None:
    assert scanned(await plan(connection, statements("postgres", "append.sql")[name], arguments)) == []


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("requests", APPENDED, ids=["plain", "guarded", "refused", "fork"])
async def test_an_append_reads_no_table_from_end_to_end(
    connection: asyncpg.Connection, requests: Sequence[AppendRequest], is_known: bool
) -> None:
    call = AppendCall(requests)
    arguments = call.arguments(1, ROWS, 0, [LAST] * len(call.runs) if is_known else None)

    assert await scanned_within(connection, "append", arguments) == {}


async def test_one_event_is_appended_without_reading_a_table_from_end_to_end(connection: asyncpg.Connection) -> None:
    (changes,) = await connection.fetchrow("SELECT changes FROM tape_meta")

    assert await scanned_within(connection, "append_one", one_event(PLAIN, 1, ROWS, changes, LAST)) == {}


async def scanned_within(connection: asyncpg.Connection, name: str, values: Sequence[object]) -> dict[str, list[str]]:
    """The tables that the statements of an append function read from end to end."""
    messages: list[str] = []
    listener = partial(on_log, messages)
    connection.add_log_listener(listener)
    await connection.execute(EXPLAIN_NESTED)

    transaction = connection.transaction()
    await transaction.start()
    await connection.fetchrow(statements("postgres", "append.sql")[name], *values)
    await transaction.rollback()

    await connection.execute("SET auto_explain.log_min_duration = -1")
    connection.remove_log_listener(listener)
    plans = [json.loads(text) for text in messages]
    assert len(plans) > 3
    return {found["Query Text"]: scans for found in plans if (scans := scanned([found]))}


def on_log(messages: list[str], connection: object, message: asyncpg.PostgresLogMessage) -> None:
    _, is_plan, text = str(message).partition("plan:\n")
    if is_plan:
        messages.append(text)


async def plan(connection: asyncpg.Connection, sql: str, arguments: str) -> Any:
    """The generic plan of a statement, which the store uses."""
    await connection.execute(f"PREPARE asked AS {sql}")
    call = f"EXECUTE asked({arguments})" if arguments else "EXECUTE asked"
    try:
        return json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) {call}"))
    finally:
        await connection.execute("DEALLOCATE asked")


def literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def scanned(found: Any) -> list[str]:
    """The tables that a plan reads from end to end, except the one row of tape_meta."""
    read = [node["Relation Name"] for node in nodes(found[0]["Plan"]) if node["Node Type"] == "Seq Scan"]
    return [table for table in read if table.startswith("tape_") and table != "tape_meta"]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)
