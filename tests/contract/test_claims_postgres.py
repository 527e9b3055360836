"""A claim on Postgres is correct with any query plan."""

from typing import Final

import asyncpg

from tape.compose import open_store
from tests.contract.reactions import claim, match, publish, reaction

AVOIDED: Final = ("hashjoin", "mergejoin", "hashagg", "material", "memoize", "sort")


async def loop_only(url: str) -> None:
    """Makes later connections plan nested loops, which scan one side once for each row of the other."""
    connection = await asyncpg.connect(url)
    try:
        database = await connection.fetchval("SELECT current_database()")
        for method in AVOIDED:
            await connection.execute(f"ALTER DATABASE {database} SET enable_{method} = off")
    finally:
        await connection.close()


async def test_p13_a_claim_takes_no_more_than_it_asks_for_however_it_is_planned(postgres_url: str) -> None:
    await loop_only(postgres_url)
    async with open_store(postgres_url) as store:
        await store.reactions.register(reaction())
        await publish(store, 20)
        await match(store)
        async with store.transaction() as tx:
            await tx.fetch("ANALYZE tape_tasks", {})

        assert len(await claim(store, 3)) == 3
