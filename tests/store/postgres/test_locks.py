"""A role that may only connect to Postgres can lock nothing that Tape waits for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import product
from urllib.parse import urlsplit

import anyio
import asyncpg
import pytest

from tape.core.ids import RunId
from tape.core.run import RunMeta
from tape.outbox import migrate
from tape.store.postgres.store import open_store
from tests.contract.events import make_event, positions, request
from tests.contract.reactions import claim, match, publish, reaction
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event as placed

KNOWN = [7461706500000001, 7461706500000002, 7461706500000003]  # of locks that Tape has had
HELD = "SELECT locktype, classid, objid, objsubid, relation::regclass::text FROM pg_locks"
TABLES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class AS c JOIN pg_namespace AS n
ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v') AND (c.relname LIKE 'tape%' OR n.nspname = 'core')
"""
MODES = [
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
]  # fmt: skip


async def test_a_role_that_may_only_connect_delays_no_append_no_migration_and_no_outbox(
    postgres_url: str, stranger: asyncpg.Connection
) -> None:
    await migrate(postgres_url)
    async with open_store(postgres_url) as store, store.transaction() as tx:
        await tx.lock()
        keys = [*KNOWN, *await advisory_keys(stranger)]

    async with holding(stranger, keys):
        with anyio.fail_after(DEADLINE_S):
            await everything(postgres_url)


async def test_a_role_that_may_use_the_schema_locks_no_table_of_it(
    postgres_url: str, stranger: asyncpg.Connection
) -> None:
    await migrate(postgres_url)
    async with open_store(postgres_url):
        tables = [name for (name,) in await stranger.fetch(TABLES)]

    taken = [(table, mode) for table, mode in product(tables, MODES) if await locks(stranger, table, mode)]

    assert len(tables) > 15 and taken == []


async def everything(url: str) -> None:
    """Runs one operation of each kind that takes a lock."""
    async with open_store(url) as store:
        await store.reactions.register(reaction())
        await publish(store, 2)
        await store.journal.append([request(make_event(n=1), key="k"), request(make_event(n=2))])
        await match(store)
        await claim(store)
        await store.runs.open(RunId("r3"), RunMeta())
        async with store.transaction() as tx:
            tx.append(request(make_event("r2", 1)))
        (entries,) = tx.outcomes
        assert positions(entries) == [(await store.journal.bounds()).head]
    seen, business = RecordingHandler(), BusinessDatabase("postgres", url)
    await business.run("CREATE TABLE orders (n integer, note text)")
    async with business.listening({"orders.seen": seen}):
        await business.publish(placed(1))
        await business.wait_until("delivered", 1)
    await migrate(url, schema="billing")


@pytest.fixture
async def stranger(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A role that may connect and use every schema, and nothing else."""
    owner, parts = await asyncpg.connect(postgres_url), urlsplit(postgres_url)
    role = f"stranger_{parts.path[1:]}"
    await migrate(postgres_url)
    await owner.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public, core TO {role}")
    connection = await asyncpg.connect(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl())
    yield connection
    await connection.close()
    await owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    await owner.close()


async def advisory_keys(connection: asyncpg.Connection) -> list[int]:
    """The advisory locks that are held now, which any role can see."""
    held = await connection.fetch(HELD)
    return [(row["classid"] << 32) + row["objid"] for row in held if row["locktype"] == "advisory"]


@asynccontextmanager
async def holding(connection: asyncpg.Connection, keys: list[int]) -> AsyncIterator[None]:
    """Takes every advisory lock that Tape has had, in each mode."""
    for key in keys:
        await connection.execute("SELECT pg_advisory_lock($1)", key)
        halves = key >> 32, key & 0x7FFFFFFF
        await connection.execute("SELECT pg_advisory_lock($1::int, $2::int)", *halves)
    for name in ("core.outbox", "billing.outbox", "tape"):
        await connection.execute("SELECT pg_advisory_lock(hashtext($1))", name)
    yield
    await connection.execute("SELECT pg_advisory_unlock_all()")


async def locks(connection: asyncpg.Connection, table: str, mode: str) -> bool:
    with suppress(asyncpg.InsufficientPrivilegeError):
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {table} IN {mode} MODE NOWAIT")
        return True
    return False
