"""Orders do not depend on a plan: they hold where the planner reads rows as they lie, and not along an index."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tape.compose import open_store
from tape.core.ports import Store
from tests.contract.reactions import claim, match, publish, reaction
from tests.servers.databases import name

ALONG_AN_INDEX = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    connection = await asyncpg.connect(postgres_url)
    for setting in ALONG_AN_INDEX:
        await connection.execute(f"ALTER DATABASE {name(postgres_url)} SET {setting} = off")
    await connection.close()
    async with open_store(postgres_url) as store:
        yield store


async def test_p12_the_task_that_is_due_longest_is_claimed_first(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 5)
    await match(store)
    async with store.transaction() as tx:  # an update moves a row to the end of its table
        await tx.fetch("UPDATE tape_tasks SET ts_ms = ts_ms WHERE source_global_seq < 4", {})

    claimed = [(await claim(store, 1))[0].source_global_seq for _ in range(5)]

    assert claimed == [2, 3, 4, 5, 6]
