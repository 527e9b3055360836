"""What only Postgres has: connections that are lost, a server's settings, poolers, and sessions of its own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import anyio
import asyncpg
import pytest

from tape.compose import open_journal, open_store, run_journal
from tape.core.errors import InvalidCursor, TapeError, Unavailable, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq, Seq
from tape.core.ports import Outcome, Store
from tape.core.sequence import CellChange, CellId, Request
from tape.store.postgres.store import PostgresStore, open_store as open_postgres
from tests.servers.databases import Databases, name
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port
from tests.servers.proxy import Proxy

PATIENCE_S = 10
TAPE_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_url).open() as proxy:
        yield proxy


@pytest.fixture
async def store(postgres_url: str, proxy: Proxy) -> AsyncIterator[PostgresStore]:
    """A store whose appends go through the proxy; what it hears comes straight from the server."""
    async with open_postgres(proxy.url, listen_url=postgres_url) as store:
        yield store


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def test_an_append_whose_answer_was_lost_is_there_once_and_is_told_its_place(
    store: Store, proxy: Proxy
) -> None:
    await append(store, said(1))
    proxy.loses_an_answer = True

    (entry,) = await append(store, said(2))

    assert (entry.global_seq, entry.seq) == (2, 2)
    assert await numbers(store) == [1, 2]


async def test_an_append_that_was_lost_on_the_way_is_sent_again(store: Store, proxy: Proxy) -> None:
    await append(store, said(1))
    proxy.loses_a_request = True

    (entry,) = await append(store, said(2))

    assert (entry.global_seq, entry.seq) == (2, 2)
    assert await numbers(store) == [1, 2]


async def test_what_others_wrote_meanwhile_does_not_hide_an_append_whose_answer_was_lost(
    store: Store, proxy: Proxy, postgres_url: str
) -> None:
    async with open_store(postgres_url) as other:
        await append(store, said(1))
        await append(other, said(2))
        proxy.loses_an_answer = True

        (entry,) = await append(store, said(3))

        assert (entry.global_seq, entry.seq) == (3, 3)
        assert await numbers(store) == [1, 2, 3]


async def test_nothing_is_written_when_there_is_no_way_to_the_server(postgres_url: str) -> None:
    proxy = Proxy(postgres_url)
    async with proxy.open():
        context = open_postgres(proxy.url, listen_url=postgres_url)
        store = await context.__aenter__()
        await append(store, said(1))
    await anyio.sleep(0.05)

    with pytest.raises(Unavailable) as refused:
        await append(store, said(2))

    assert refused.value.outcome == "nothing"
    async with proxy.open():
        assert await numbers(store) == [1]
        await context.__aexit__(None, None, None)


async def test_a_value_postgres_cannot_hold_fails_alone_in_a_group(store: Store) -> None:
    requests = [request(said(1), expected=0), poison(2), request(said(3), expected=1)]

    outcomes = await store.journal.append(requests)

    assert [places(outcome) for outcome in outcomes] == [[1], [], [2]]
    assert isinstance(outcomes[1], UsageError)
    assert await numbers(store) == [1, 3]


async def test_a_group_cut_in_two_keeps_what_its_first_half_was_told(store: Store, direct: asyncpg.Connection) -> None:
    await append(store, said(1))
    await direct.execute("CREATE RULE wait AS ON INSERT TO tape_cells DO ALSO SELECT pg_sleep(99)")
    await direct.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {name_of(direct)} SET statement_timeout = '100ms'")
    changed = Request(events=(said(3),), cells=(cell("{}"),), expected_seq=Seq(2), opens=True)

    outcomes = await store.journal.append([request(said(2), expected=1), changed])

    assert places(outcomes[0]) == [2] and isinstance(outcomes[1], Unavailable)
    assert await numbers(store) == [1, 2]


def said(n: int) -> Event:
    return Event(run_id="r1", payload=n)


def cell(state: str) -> CellChange:
    return CellChange(id=CellId("ledger", "key"), seen=0, status="open", state_json=state)


def request(event: Event, expected: int | None = None) -> Request:
    return Request(events=(event,), opens=True, expected_seq=None if expected is None else Seq(expected))


def poison(n: int) -> Request:
    return Request(events=(said(n),), cells=(cell("\0"),), opens=True)


async def append(store: Store, event: Event) -> Sequence[Entry]:
    with anyio.fail_after(PATIENCE_S):
        (outcome,) = await store.journal.append([request(event)])
    if isinstance(outcome, TapeError):
        raise outcome
    return outcome


async def numbers(store: Store) -> list[object]:
    return [entry.payload for entry in (await store.journal.read(GlobalSeq(0))).entries]


def places(outcome: Outcome) -> list[int]:
    return [] if isinstance(outcome, TapeError) else [entry.global_seq for entry in outcome]
