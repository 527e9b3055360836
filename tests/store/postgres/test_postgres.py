"""Features of Postgres: lost connections, server settings, poolers, and sessions."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from urllib.parse import urlsplit

import anyio
import asyncpg
import pytest

from tape.compose import open_journal, open_store, run_journal
from tape.core.errors import InvalidCursor, RunNotFound, TapeError, Unavailable, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome, Store
from tape.core.sequence import AppendRequest, CellChange, CellId
from tape.store.postgres.store import POOL, PostgresStore, open_store as open_postgres
from tests.deadlines import DEADLINE_S
from tests.servers.databases import Databases, name
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port
from tests.servers.proxy import Proxy

DEAF_POLL_S = 0.5
REFUSE_CELLS = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = 'lock_not_available'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON tape_cells EXECUTE FUNCTION refuse();
"""
END_LISTENERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query ~ '^(LISTEN|NOTIFY)' AND pid <> pg_backend_pid()
"""


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_url).open() as proxy:
        yield proxy


@pytest.fixture
async def store(postgres_url: str, proxy: Proxy) -> AsyncIterator[PostgresStore]:
    """A store that appends through the proxy and listens on a direct connection."""
    async with open_postgres(proxy.url, listen_url=postgres_url) as store:
        yield store


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def test_an_append_whose_answer_was_lost_is_there_once_and_gets_its_position(store: Store, proxy: Proxy) -> None:
    await append(store, Event(run_id="r1", payload=1))
    proxy.loses_an_answer = True

    (entry,) = await append(store, Event(run_id="r1", payload=2))

    assert (entry.global_seq, entry.seq) == (2, 2)
    assert await numbers(store) == [1, 2]


async def test_an_append_that_was_lost_on_the_way_is_sent_again(store: Store, proxy: Proxy) -> None:
    await append(store, Event(run_id="r1", payload=1))
    proxy.loses_a_request = True

    (entry,) = await append(store, Event(run_id="r1", payload=2))

    assert (entry.global_seq, entry.seq) == (2, 2)
    assert await numbers(store) == [1, 2]


async def test_what_others_wrote_meanwhile_does_not_hide_an_append_whose_answer_was_lost(
    store: Store, proxy: Proxy, postgres_url: str
) -> None:
    async with open_store(postgres_url) as other:
        await append(store, Event(run_id="r1", payload=1))
        await append(other, Event(run_id="r1", payload=2))
        proxy.loses_an_answer = True

        (entry,) = await append(store, Event(run_id="r1", payload=3))

        assert (entry.global_seq, entry.seq) == (3, 3)
        assert await numbers(store) == [1, 2, 3]


async def test_nothing_is_written_when_there_is_no_way_to_the_server(postgres_url: str) -> None:
    proxy = Proxy(postgres_url)
    async with proxy.open():
        context = open_postgres(proxy.url, listen_url=postgres_url)
        store = await context.__aenter__()
        await append(store, Event(run_id="r1", payload=1))
    await anyio.sleep(0.05)

    with pytest.raises(Unavailable) as refused:
        await append(store, Event(run_id="r1", payload=2))

    assert refused.value.outcome == "nothing"
    async with proxy.open():
        assert await numbers(store) == [1]
        await context.__aexit__(None, None, None)


async def test_a_value_postgres_cannot_hold_fails_alone_in_a_group(store: Store) -> None:
    requests = [
        request(Event(run_id="r1", payload=1), expected=0),
        poison(2),
        request(Event(run_id="r1", payload=3), expected=1),
    ]

    outcomes = await store.journal.append(requests)

    assert [positions(outcome) for outcome in outcomes] == [[1], [], [2]]
    assert isinstance(outcomes[1], UsageError)
    assert await numbers(store) == [1, 3]


async def test_a_group_cut_in_two_keeps_the_answers_of_its_first_half(store: Store, direct: asyncpg.Connection) -> None:
    await direct.execute(REFUSE_CELLS)
    changed = AppendRequest(
        events=(Event(run_id="r1", payload=2),), cells=(cell("{}"),), expected_seq=Seq(1), opens=True
    )

    outcomes = await store.journal.append([request(Event(run_id="r1", payload=1), expected=0), changed])

    assert positions(outcomes[0]) == [1] and isinstance(outcomes[1], Unavailable)
    assert await numbers(store) == [1]


async def test_a_request_for_two_runs_gets_its_own_first_refusal(store: Store) -> None:
    first = AppendRequest(events=(Event(run_id="a", payload=1),))
    second = AppendRequest(events=(Event(run_id="b", payload=1), Event(run_id="a", payload=1)))

    outcomes = await store.journal.append([first, second])

    assert [str(outcome) for outcome in outcomes] == [str(RunNotFound(RunId("a"))), str(RunNotFound(RunId("b")))]


async def test_a_listener_that_is_ended_over_and_over_costs_no_more_than_the_poll(
    store: PostgresStore, postgres_url: str, direct: asyncpg.Connection
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_listeners, direct)
        await everything_arrives_within_the_poll(store, postgres_url)
        tasks.cancel_scope.cancel()


async def test_without_a_way_to_listen_everything_arrives_within_the_poll(postgres_url: str) -> None:
    dead = f"postgresql://tape@127.0.0.1:{free_port()}/none"
    async with open_postgres(postgres_url, listen_url=dead) as deaf:
        await everything_arrives_within_the_poll(deaf, postgres_url)


async def test_a_pooler_that_swallows_notifications_is_found_out_and_polled_behind(
    postgres_url: str, proxy: Proxy
) -> None:
    proxy.is_deaf = True
    async with open_postgres(postgres_url, listen_url=proxy.url) as deaf:
        await everything_arrives_within_the_poll(deaf, postgres_url)


async def test_a_listener_that_may_not_connect_does_not_end_the_store(postgres_url: str) -> None:
    stranger = postgres_url + "_that_is_not_there"
    async with open_postgres(postgres_url, listen_url=stranger) as store:
        await anyio.sleep(0.2)

        assert [entry.seq for entry in await append(store, Event(run_id="r1", payload=1))] == [1]


async def test_a_reader_beyond_a_restored_backup_gets_an_error_at_once(
    postgres_url: str, postgres_databases: Databases
) -> None:
    async with open_store(postgres_url) as store:
        await append(store, Event(run_id="r1", payload=1))
    with postgres_databases.database(name(postgres_url)) as backup:
        async with open_journal(postgres_url) as journal, aclosing(journal.stream()) as stream:
            await journal.append(Event(run_id="r1", payload=2))
            assert [(await anext(stream)).payload for _ in range(2)] == [1, 2]

            postgres_databases.restore_database(postgres_url, backup)

            with anyio.fail_after(DEADLINE_S), pytest.raises(InvalidCursor, match="the journal is at 1"):
                await anext(stream)


async def test_a_server_that_acknowledges_too_soon_is_refused(postgres_url: str, direct: asyncpg.Connection) -> None:
    await direct.execute(f"ALTER DATABASE {name(postgres_url)} SET synchronous_commit = off")

    with pytest.raises(UsageError, match=r"synchronous_commit=off.*--unsafe-durability"):
        async with open_store(postgres_url):
            pass

    async with open_store(postgres_url, unsafe_durability=True) as store:
        assert [entry.seq for entry in await append(store, Event(run_id="r1", payload=1))] == [1]


async def test_a_server_that_never_syncs_is_refused() -> None:
    refused = pytest.raises(UsageError, match=r"fsync=off.*--unsafe-durability")
    with PostgresServer(settings={"fsync": "off"}) as server, server.database() as url, refused:
        async with open_store(url):
            pass


async def everything_arrives_within_the_poll(store: Store, url: str) -> None:
    async with open_store(url) as other, run_journal(store) as journal, aclosing(journal.stream()) as stream:
        for number in range(4):
            await append(other, Event(run_id="r1", payload=number))
            with anyio.fail_after(DEADLINE_S):
                assert (await anext(stream)).payload == number


async def end_listeners(direct: asyncpg.Connection) -> None:
    while True:
        await direct.execute(END_LISTENERS)
        await anyio.sleep(0.02)


def cell(state: str) -> CellChange:
    return CellChange(id=CellId("ledger", "key"), seen=0, status="open", state_json=state)


def request(event: Event, expected: int | None = None) -> AppendRequest:
    return AppendRequest(events=(event,), opens=True, expected_seq=None if expected is None else Seq(expected))


def poison(n: int) -> AppendRequest:
    far = cell("{}")
    object.__setattr__(far, "due_at_ms", 1 << 63)  # no request can be made like this; the store must survive it anyway
    return AppendRequest(events=(Event(run_id="r1", payload=n),), cells=(far,), opens=True)


async def append(store: Store, event: Event) -> Sequence[Entry]:
    with anyio.fail_after(DEADLINE_S):
        (outcome,) = await store.journal.append([request(event)])
    if isinstance(outcome, TapeError):
        raise outcome
    return outcome


async def numbers(store: Store) -> list[object]:
    return [entry.payload for entry in (await store.journal.read(GlobalSeq(0))).entries]


def positions(outcome: AppendOutcome) -> list[int]:
    return [] if isinstance(outcome, TapeError) else [entry.global_seq for entry in outcome]


async def test_a_block_that_fails_when_its_session_is_gone_says_why(store: Store, direct: asyncpg.Connection) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with store.transaction() as tx:
            ((process,),) = await tx.fetch("SELECT pg_backend_pid()", {})
            await direct.execute("SELECT pg_terminate_backend($1)", process)
            raise KeyError("mine")


async def test_settings_of_a_database_do_not_change_what_we_mean(postgres_url: str, direct: asyncpg.Connection) -> None:
    database = urlsplit(postgres_url).path[1:]
    for setting in ("default_transaction_isolation = 'repeatable read'", "standard_conforming_strings = off"):
        await direct.execute(f"ALTER DATABASE {database} SET {setting}")
    event = Event(run_id="r", payload="back\\slash and 'quote'")

    async with open_store(postgres_url) as one, open_store(postgres_url) as other:
        async with one.transaction() as tx:
            tx.append(AppendRequest(events=(event,), opens=True))
        for n in range(20):
            await append(one if n % 2 else other, Event(run_id="r1", payload=n))
        page = await one.journal.read(GlobalSeq(0))

    assert page.entries[0].payload == event.payload
    assert positions(page.entries) == list(range(1, 22))


async def test_a_repeated_request_in_a_block_gives_the_entry_that_is_stored(store: Store) -> None:
    keyed = AppendRequest(events=(Event(run_id="r1", payload=1),), opens=True, key="k")
    (first,) = await store.journal.append([keyed])

    async with store.transaction() as tx:
        tx.append(AppendRequest(events=(Event(run_id="r1", payload=1),), opens=True, key="k"))

    assert list(tx.outcomes) == [first]


async def test_opening_a_journal_that_is_current_needs_no_right_to_create(
    postgres_url: str, direct: asyncpg.Connection
) -> None:
    role = f"reader_{urlsplit(postgres_url).path[1:]}"
    async with open_store(postgres_url):
        await direct.execute(f"CREATE ROLE {role} LOGIN")
        await direct.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    parts = urlsplit(postgres_url)
    try:
        async with open_store(parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()) as store:
            assert positions(await append(store, Event(run_id="r1", payload=1))) == [1]
    finally:
        await direct.execute(f"DROP OWNED BY {role}")
        await direct.execute(f"DROP ROLE {role}")


async def test_who_waits_for_a_connection_gets_the_next_that_is_free(postgres_url: str) -> None:
    async with open_postgres(postgres_url) as store, AsyncExitStack() as blocks:
        for _ in range(POOL - 1):
            await blocks.enter_async_context(store.transaction())
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks, store.transaction():
                tasks.start_soon(store.journal.bounds)
                while not store._database._waiting:  # noqa: ASYNC110, SLF001 - the store does not show it
                    await anyio.sleep(0.001)
            assert (await store.journal.bounds()).head == 0
