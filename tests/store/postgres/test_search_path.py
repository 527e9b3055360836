"""Functions of another role in a schema on the search path never run."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import anyio
import asyncpg
import pytest

from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.outbox import migrate
from tape.store.postgres.store import open_store
from tape.store.ranges import EVERYTHING, open_ranges
from tests.contract.events import make_event, request
from tests.contract.reactions import claim, match, publish, reaction, settle
from tests.deadlines import DEADLINE_S
from tests.servers.planting import caught, planting

UNPINNED = """
SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE (n.nspname = 'core' OR p.proname LIKE 'tape%') AND p.prosqlbody IS NULL
  AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
"""


@pytest.fixture
async def planted(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    async with planting(postgres_url) as owner:
        yield owner


async def test_what_is_planted_in_the_schema_of_the_journal_is_not_run(
    postgres_url: str, planted: asyncpg.Connection
) -> None:
    async with open_store(postgres_url) as store:
        await worked(store)
    with open_ranges(postgres_url) as ranges:
        assert ranges.bounds().head > 0
        assert list(ranges.read(0, 2, ["global_seq", "subject"], EVERYTHING))

    assert await caught(planted) == set()


async def test_every_function_has_a_search_path_of_its_own(postgres_url: str) -> None:
    async with open_store(postgres_url):
        await migrate(postgres_url)

    owner = await asyncpg.connect(postgres_url)
    found = [name for (name,) in await owner.fetch(UNPINNED)]
    await owner.close()

    assert found == []


@pytest.mark.parametrize("schema", ["journal", 'od"d na:me'])
async def test_a_journal_lies_in_the_schema_that_its_url_names(postgres_url: str, schema: str) -> None:
    quoted = '"' + schema.replace('"', '""') + '"'
    owner = await asyncpg.connect(postgres_url)
    await owner.execute(f"CREATE SCHEMA {quoted}")
    path = quoted.replace("\\", "\\\\").replace(" ", "\\ ")
    url = f"{postgres_url}?options={quote(f'-csearch_path={path}')}"
    async with open_store(postgres_url) as other:
        await publish(other, 3)

    async with open_store(url) as store:
        await worked(store)
    async with open_store(url) as store:
        head = (await store.journal.bounds()).head
    with open_ranges(url) as ranges:
        assert ranges.bounds().head == head

    assert await owner.fetchval(f"SELECT max(global_seq) FROM {quoted}.tape_journal") == head
    assert await owner.fetchval("SELECT max(global_seq) FROM public.tape_journal") == 3
    await owner.close()


async def test_ranges_are_of_the_journal_that_a_store_opens_wherever_the_path_was_set(postgres_url: str) -> None:
    owner = await asyncpg.connect(postgres_url)
    await owner.execute('CREATE SCHEMA "we ird"')
    await owner.execute("""ALTER SYSTEM SET search_path = 'we ird', public""")
    try:
        await reloaded(owner, '"we ird", public')
        async with open_store(postgres_url) as store:
            await publish(store, 1)
        async with open_store(f"{postgres_url}?options=-csearch_path%3Dpublic") as other:
            await publish(other, 3)
        with open_ranges(postgres_url) as ranges:
            assert ranges.bounds().head == 1
    finally:
        await owner.execute("ALTER SYSTEM RESET search_path")
        await reloaded(owner, '"$user", public')
        await owner.close()


async def reloaded(owner: asyncpg.Connection, path: str) -> None:
    """Returns when the server has reloaded its configuration."""
    await owner.execute("SELECT pg_reload_conf()")
    with anyio.fail_after(DEADLINE_S):
        while await owner.fetchval("SHOW search_path") != path:  # noqa: ASYNC110 - the server tells nobody
            await anyio.sleep(0.01)


async def worked(store: Store) -> None:
    """Runs one operation of each kind."""
    await store.reactions.register(reaction())
    await publish(store, 3)
    await store.journal.append([request(make_event(n=1), key="k")])
    await store.journal.append([request(make_event(n=1), key="k"), request(make_event(n=2), expected=99)])
    await match(store)
    for task in await claim(store):
        assert await settle(store, task) is None
    async with store.transaction() as tx:
        tx.append(request(make_event("r2", 1)))
    await store.runs.open(RunId("r3"), RunMeta())
    await store.journal.read(GlobalSeq(0))
