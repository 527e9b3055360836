"""Settings of a Postgres server that change while a journal is open: each new connection checks them."""

from collections.abc import AsyncIterator

import anyio
import asyncpg
import pytest

from tape.core.errors import UsageError
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.store.postgres.store import PostgresStore, open_store
from tape.store.timeouts import Timeouts
from tests.contract.events import append, make_event, request
from tests.deadlines import DEADLINE_S
from tests.servers.databases import name

TIMEOUTS = Timeouts(connect_s=5, answer_s=5, recovery_s=0.3)
END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_url, timeouts=TIMEOUTS) as store:
        yield store


async def test_a_server_that_acknowledges_too_soon_from_now_on_gets_nothing_from_whoever_connects(
    store: Store, direct: asyncpg.Connection, postgres_url: str
) -> None:
    await append(store, make_event(n=1))
    await direct.execute(f"ALTER DATABASE {name(postgres_url)} SET synchronous_commit = off")
    await direct.execute(END_SESSIONS)

    await until_refused(store)
    with pytest.raises(UsageError, match="synchronous_commit=off"):
        async with store.transaction():
            pytest.fail("it began")
    with pytest.raises(UsageError, match="synchronous_commit=off"):
        await store.journal.read(GlobalSeq(0))


async def test_a_server_that_was_put_right_is_used_again(
    store: Store, direct: asyncpg.Connection, postgres_url: str
) -> None:
    await append(store, make_event(n=1))
    await direct.execute(f"ALTER DATABASE {name(postgres_url)} SET synchronous_commit = off")
    await direct.execute(END_SESSIONS)
    await until_refused(store)

    await direct.execute(f"ALTER DATABASE {name(postgres_url)} RESET synchronous_commit")

    assert [entry.global_seq for entry in await append(store, make_event(n=2))] == [2]


async def until_refused(store: Store) -> None:
    """Retries once, because the first answer may be a lost connection."""
    with anyio.fail_after(DEADLINE_S):
        while True:
            (outcome,) = await store.journal.append([request(make_event(n=9))])
            if isinstance(outcome, UsageError):
                return
