"""Idle connections of a pool that Postgres has ended: the next statement gets another one."""

from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from tape.compose import open_store
from tape.core.event import Event
from tape.core.ids import GlobalSeq, RunId
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.core.sequence import AppendRequest
from tape.core.task import ClaimRequest

OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
RUN = RunId("r1")

Use = Callable[[Store], Awaitable[object]]

USES: dict[str, Use] = {
    "bounds": lambda store: store.journal.bounds(),
    "a page": lambda store: store.journal.read(GlobalSeq(0)),
    "a run": lambda store: store.runs.find(RUN),
    "heads": lambda store: store.runs.heads([RUN]),
    "an opening": lambda store: store.runs.open(RunId("r2"), RunMeta()),
    "a claim": lambda store: store.tasks.claim(ClaimRequest(owner="w")),
}


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    async with open_store(postgres_url) as store:
        await store.journal.append([AppendRequest(events=(Event(run_id="r1", payload=1),), opens=True)])
        yield store


async def end_connections(url: str, *, is_noticed: bool) -> None:
    """Ends all other sessions; if they must be noticed, returns after the event loop has seen them end."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")
        while is_noticed and await connection.fetchval(f"SELECT count(*) {OTHERS}"):
            pass
    finally:
        await connection.close()


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_connection_that_was_ended_costs_the_next_statement_nothing(
    store: Store, postgres_url: str, use: Use, is_noticed: bool
) -> None:
    await store.journal.bounds()

    await end_connections(postgres_url, is_noticed=is_noticed)

    await use(store)


async def test_an_append_after_its_connection_was_ended_is_there_once(store: Store, postgres_url: str) -> None:
    await end_connections(postgres_url, is_noticed=False)

    (outcome,) = await store.journal.append([AppendRequest(events=(Event(run_id="r1", payload=2),))])

    assert [entry.seq for entry in outcome] == [2]  # type: ignore[union-attr]
    assert (await store.journal.bounds()).head == 2


async def test_p4_an_append_after_its_connection_was_ended_goes_on_behind_what_others_wrote(
    store: Store, postgres_url: str
) -> None:
    event = AppendRequest(events=(Event(run_id="r1", payload=2),))
    async with open_store(postgres_url) as other:
        await other.journal.append([event])
    await end_connections(postgres_url, is_noticed=True)

    (outcome,) = await store.journal.append([event])

    assert [entry.seq for entry in outcome] == [3]  # type: ignore[union-attr]
