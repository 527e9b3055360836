"""Runs on Postgres: a change locks the row of a run first and the journal last, so that nothing deadlocks."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import anyio
import asyncpg
import pytest

from tape.compose import open_store
from tape.core.errors import RunClosed, RunOpen
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.ports import AppendOutcome, Store
from tape.core.run import Head, RunMeta
from tape.core.sequence import AppendRequest
from tests.contract.events import make_event
from tests.deadlines import DEADLINE_S

ROUNDS = 10
R1, R2 = RunId("r1"), RunId("r2")
TOUCH = "UPDATE tape_runs SET touched_at = 1 WHERE run_id = :run_id"
SILENCE = timedelta(seconds=5)
AGE = "UPDATE tape_runs SET renewed_at = renewed_at - 10000"
RENEW = "UPDATE tape_runs SET renewed_at = tape_now_ms()"
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    async with open_store(postgres_url) as store:
        yield store


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def test_an_append_does_not_wait_for_a_block_that_has_changed_its_runs_row(store: Store) -> None:
    await store.runs.open(R1, RunMeta())

    async with store.transaction() as tx:
        await tx.fetch(TOUCH, {"run_id": R1})
        with anyio.fail_after(DEADLINE_S):
            (outcome,) = await store.journal.append([AppendRequest(events=(make_event(),))])

    assert seqs(outcome) == [1]


async def test_a_renewal_waits_neither_for_the_journals_lock_nor_for_heads(store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.open(R2, RunMeta(), "p1")

    async with store.transaction() as tx:
        await tx.lock()
        await tx.fetch("UPDATE tape_heads SET floor = floor", {})
        with anyio.fail_after(DEADLINE_S):
            held = await store.runs.renew("p1", [R1, R2])

    assert list(held) == [R1, R2]


@pytest.mark.parametrize("change", ["close", "reap", "open"])
async def test_a_change_of_a_run_waits_for_a_block_that_changed_it_first_and_not_the_block_for_it(
    store: Store, direct: asyncpg.Connection, change: str
) -> None:
    await store.journal.append([AppendRequest(events=(make_event(),), opens=True)])
    if change != "close":
        await store.runs.close(R1)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks, store.transaction() as tx:
            await tx.fetch(TOUCH, {"run_id": R1})
            tasks.start_soon(perform, store, change)
            await until_blocked(direct)
            tx.append(AppendRequest(events=(make_event("other"),), opens=True))

    assert [seqs(outcome) for outcome in tx.outcomes] == [[1]]


async def test_what_a_block_appended_first_is_before_the_close_that_waited_for_it(
    store: Store, direct: asyncpg.Connection
) -> None:
    await store.runs.open(R1, RunMeta())

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks, store.transaction() as tx:
            await tx.fetch(TOUCH, {"run_id": R1})
            tasks.start_soon(perform, store, "close")
            await until_blocked(direct)
            tx.append(AppendRequest(events=(make_event(),)))

    assert (await store.runs.heads([R1]))[R1].closed_seq == 1


async def test_closing_the_silent_passes_by_who_is_busy_with_one_of_them(store: Store) -> None:
    for run_id in (R1, R2):
        await store.runs.open(run_id, RunMeta(), "p1")

    async with store.transaction() as tx:
        await tx.fetch(TOUCH, {"run_id": R1})
        with anyio.fail_after(DEADLINE_S):
            first = await store.runs.close_silent(timedelta(0))
    second = await store.runs.close_silent(timedelta(0))

    assert ([*first], [*second]) == ([R2], [R1])


async def test_a_renewal_that_finds_its_run_being_closed_waits_and_is_refused(
    store: Store, direct: asyncpg.Connection
) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    held: list[RunId] = []

    async def renew() -> None:
        held.extend(await store.runs.renew("p1", [R1]))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks, store.transaction() as tx:
            await tx.lock()
            tasks.start_soon(store.runs.close_silent, timedelta(0))
            await until_blocked(direct)
            tasks.start_soon(renew)
            await until_blocked(direct, 2)

    (outcome,) = await store.journal.append([AppendRequest(events=(make_event(),))])
    assert held == []
    assert isinstance(outcome, RunClosed)


async def test_a_run_that_is_just_being_renewed_stays_open(store: Store, direct: asyncpg.Connection) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await direct.execute(AGE)

    async with direct.transaction():
        await direct.execute(RENEW)
        during = await store.runs.close_silent(SILENCE)
    after = await store.runs.close_silent(SILENCE)

    assert (during, after) == ({}, {})


async def test_nobody_ever_waits_in_a_circle(store: Store) -> None:
    """Transactions that change runs first and append last, beside every operation of the directory."""
    runs = [RunId(f"r{n}") for n in range(4)]
    for run_id in runs:
        await store.runs.open(run_id, RunMeta(), "p1")

    async def block(run_id: RunId) -> None:
        async with store.transaction() as tx:
            await tx.fetch(TOUCH, {"run_id": run_id})
            tx.append(AppendRequest(events=(make_event(run_id),), opens=True))

    async def reopen(run_id: RunId) -> None:
        await store.runs.close(run_id)
        with suppress(RunOpen):
            await store.runs.open(run_id, RunMeta(), "p1")

    async def others(run_id: RunId) -> None:
        await store.runs.renew("p1", runs[::-1])
        await store.runs.close_silent(timedelta(0))
        await store.journal.append([AppendRequest(events=(make_event(run_id),), opens=True)])

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            for run_id in runs:
                for act in (block, reopen, others):
                    tasks.start_soon(repeat, act, run_id)

    assert (await store.journal.bounds()).head == 2 * ROUNDS * len(runs)


async def repeat(act: Callable[[RunId], Awaitable[None]], run_id: RunId) -> None:
    for _ in range(ROUNDS):
        await act(run_id)


async def test_a_run_that_appeared_and_ended_while_its_opening_waited_is_opened_all_the_same(
    store: Store, direct: asyncpg.Connection
) -> None:
    opened: list[Head] = []

    async def open_it() -> None:
        opened.append(await store.runs.open(R1, RunMeta(label="again"), "p1"))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks, store.transaction() as tx:
            await tx.lock()
            tasks.start_soon(open_it)
            await until_blocked(direct)
            await tx.fetch("INSERT INTO tape_heads (run_id, last_seq, closed_seq) VALUES ('r1', 3, 3)", {})
            await tx.fetch("INSERT INTO tape_runs (run_id, opened_at, closed_at) VALUES ('r1', 1, 2)", {})

    assert (opened[0].opened_seq, opened[0].is_open) == (3, True)
    assert list(await store.runs.renew("p1", [R1])) == [R1]


async def perform(store: Store, change: str) -> None:
    match change:
        case "open":
            await store.runs.open(R1, RunMeta())
        case "reap":
            await store.runs.reap(R1)
        case _:
            await store.runs.close(R1)


async def until_blocked(direct: asyncpg.Connection, count: int = 1) -> None:
    """Returns when this many sessions of the store wait for a lock."""
    while await direct.fetchval(BLOCKED) < count:  # noqa: ASYNC110 - only asking can tell
        await anyio.sleep(0.01)


def seqs(outcome: AppendOutcome | list[Entry]) -> list[int]:
    if isinstance(outcome, Exception):
        raise outcome
    return [entry.seq for entry in outcome]
