"""A term begins when the server that writes is not the one that wrote last, whichever way it writes first.

A promotion and a copy in another cluster are played by changing what the journal knows of its server.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tape.compose import open_store
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.core.sequence import AppendRequest
from tests.servers.databases import execute, fetch

PROMOTE = "UPDATE tape_meta SET timeline = '00000000'"
MOVE = "UPDATE tape_meta SET cluster = '1'"

Write = Callable[[Store], Awaitable[object]]


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    """A journal of two entries, with a session that has cached the head of the run."""
    async with open_store(postgres_url) as store:
        for n in (1, 2):
            await append(store, event(n))
        yield store


def event(n: int) -> Event:
    return Event(run_id="r", payload=n)


async def append(store: Store, *events: Event) -> None:
    (outcome,) = await store.journal.append([AppendRequest(events=events, opens=True)])
    assert not isinstance(outcome, Exception)


async def open_run(store: Store) -> None:
    await store.runs.open(RunId("other"), RunMeta())


async def in_a_transaction(store: Store) -> None:
    async with store.transaction() as tx:
        tx.append(AppendRequest(events=(event(3),), opens=True))


WRITES: dict[str, Write] = {
    "one event": lambda store: append(store, event(3)),
    "a group": lambda store: append(store, event(3), event(4)),
    "a transaction": in_a_transaction,
    "a run": open_run,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_whoever_writes_first_after_a_promotion_begins_the_term(
    store: Store, postgres_url: str, write: Write
) -> None:
    before = store.epoch
    execute(postgres_url, PROMOTE)

    await write(store)

    (_, term) = await store.journal.terms()
    entries = (await store.journal.read(0)).entries  # type: ignore[arg-type]
    assert term.first == 3 and term.epoch > before
    assert {entry.epoch for entry in entries[:2]} == {before} and {entry.epoch for entry in entries[2:]} <= {term.epoch}


async def test_a_term_begins_once(store: Store, postgres_url: str) -> None:
    execute(postgres_url, PROMOTE)
    for n in (3, 4):
        await append(store, event(n))

    async with open_store(postgres_url) as other:
        await append(other, event(5))

    assert [term.first for term in await store.journal.terms()] == [1, 3]


@pytest.mark.parametrize("change", [PROMOTE, MOVE])
async def test_nobody_reads_from_another_server_before_its_term_has_begun(
    store: Store, postgres_url: str, change: str
) -> None:
    before = store.epoch
    execute(postgres_url, change)

    async with open_store(postgres_url) as other:
        assert (await other.journal.read(0)).epoch > before  # type: ignore[arg-type]


async def test_where_a_service_does_not_tell_its_timeline_there_is_one_term(store: Store, postgres_url: str) -> None:
    head = "CREATE OR REPLACE FUNCTION tape_server(OUT cluster text, OUT timeline text) LANGUAGE sql"
    hide = f"{head} AS $$SELECT '', ''$$"
    execute(postgres_url, f"{hide}; UPDATE tape_meta SET cluster = '', timeline = ''")
    for n in (3, 4):
        await append(store, event(n))

    assert len(await store.journal.terms()) == 1


async def test_an_entry_that_is_not_of_the_term_of_its_position_is_a_fault(store: Store, postgres_url: str) -> None:
    execute(postgres_url, PROMOTE)
    await append(store, event(3))
    assert [page.faults async for page in store.audit.pages() if page.faults] == []

    execute(postgres_url, "UPDATE tape_journal SET epoch = (SELECT min(epoch) FROM tape_terms)")

    faults = [fault async for page in store.audit.pages() for fault in page.faults]
    assert [fault.global_seq for fault in faults] == [3] and "began at 3" in faults[0].reason


async def test_a_term_is_kept_with_the_server_it_began_on(store: Store, postgres_url: str) -> None:
    execute(postgres_url, PROMOTE)
    await append(store, event(3))

    (here,) = fetch(postgres_url, "SELECT cluster, timeline FROM tape_server()")
    assert fetch(postgres_url, "SELECT cluster, timeline FROM tape_terms") == [here, here]
