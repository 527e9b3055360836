"""A producer's lease on a run: renewed, lost, or expired."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.errors import RunClosed
from tape.core.ids import RunId
from tape.core.lease import GONE
from tape.core.ports import Store
from tape.core.run import Head, RunActivity, RunMeta, RunRecord
from tape.core.run_query import OPEN_RUNS
from tests.contract.ageing import age
from tests.contract.backends import Backend
from tests.contract.events import append, entries, make_event, request
from tests.deadlines import DEADLINE_S

R1, R2, R3 = RunId("r1"), RunId("r2"), RunId("r3")
NONE_AT_ALL = timedelta(0)
SEVEN_SECONDS = timedelta(seconds=7)
SEVEN_HOURS = timedelta(hours=7)
META = RunMeta(label="race", started_at="2026-05-21T10:00:00Z", app="arena", user="ann", session="s-1")


async def found(store: Store, run_id: RunId = R1) -> RunRecord:
    record = await store.runs.find(run_id)
    assert record is not None
    return record


@asynccontextmanager
async def two_stores(backend: Backend) -> AsyncIterator[tuple[Store, Store]]:
    """Two nodes over the same data; where the data cannot be shared, one twice."""
    async with backend.open() as one:
        if not backend.is_durable:
            yield one, one
            return
        async with backend.open() as other:
            yield one, other


async def leased(store: Store, count: int) -> list[RunId]:
    """So many open runs that one producer holds."""
    runs = [RunId(f"r{n:02}") for n in range(count)]
    for run_id in runs:
        await store.runs.open(run_id, RunMeta(), "p1")
    return runs


async def test_a_leased_run_becomes_stale_when_its_lease_is_not_renewed(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    before = (await found(store)).status

    await age(backend, store, SEVEN_SECONDS)

    run = await found(store)
    assert (before, run.status) == (RunActivity.RUNNING, RunActivity.STALE)
    assert (run.silent_ms or 0) >= 7_000


async def test_a_run_without_a_lease_is_never_stale(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta())
    await age(backend, store, SEVEN_HOURS)

    assert (await found(store)).status is RunActivity.RUNNING
    assert await store.runs.close_silent(NONE_AT_ALL) == {}


async def test_a_run_older_than_six_hours_that_is_renewed_is_still_running(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await age(backend, store, SEVEN_HOURS)

    held = await store.runs.renew("p1", [R1])

    run = await found(store)
    assert (list(held), run.status) == ([R1], RunActivity.RUNNING)
    assert (run.silent_ms or 0) < 6_000
    assert await store.runs.close_silent(GONE) == {}


async def test_a_producer_renews_only_what_it_holds(store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.open(R2, RunMeta(), "p2")
    await store.runs.open(R3, RunMeta())

    held = await store.runs.renew("p1", [R3, R2, R1, RunId("unknown")])

    assert list(held) == [R1]


async def test_renewing_nothing_holds_nothing(store: Store) -> None:
    assert list(await store.runs.renew("p1", [])) == []


async def test_a_renewal_by_another_producer_does_not_count(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await age(backend, store, SEVEN_SECONDS)

    await store.runs.renew("p2", [R1])

    assert (await found(store)).status is RunActivity.STALE


async def test_a_run_with_an_expired_lease_is_closed_at_its_last_seq(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await append(store, make_event(n=1), make_event(n=2))
    await age(backend, store, GONE)

    closed = await store.runs.close_silent(GONE)

    assert [*closed] == [R1]
    assert (closed[R1].last_seq, closed[R1].closed_seq) == (2, 2)
    assert (await found(store)).status is RunActivity.COMPLETE


async def test_only_runs_with_expired_leases_are_closed(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.open(R2, RunMeta(), "p2")
    await age(backend, store, GONE)
    await store.runs.open(R3, RunMeta(), "p2")
    await store.runs.renew("p2", [R2])

    closed = await store.runs.close_silent(GONE)

    assert [*closed] == [R1]
    assert [run.run_id for run in await store.runs.listed(OPEN_RUNS)] == [R2, R3]


async def test_a_late_producer_gets_run_closed(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await append(store, make_event())
    await age(backend, store, GONE)
    await store.runs.close_silent(GONE)

    held = await store.runs.renew("p1", [R1])
    (outcome,) = await store.journal.append([request(make_event(), opens=False)])

    assert list(held) == []
    assert isinstance(outcome, RunClosed)


async def test_a_stream_ends_when_an_expired_run_is_closed(backend: Backend, store: Store, journal: Journal) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await journal.append([make_event(n=1), make_event(n=2)])
    seen: list[int] = []

    async def read() -> None:
        async for entry in journal.stream(run_id="r1"):
            seen.append(entry.seq)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await store.runs.close_silent(NONE_AT_ALL)

    assert seen == [1, 2]


async def test_a_lease_ends_when_its_run_is_closed(store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.close(R1)

    assert list(await store.runs.renew("p1", [R1])) == []


async def test_opening_again_without_a_producer_leaves_no_lease(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.close(R1)
    await store.runs.open(R1, RunMeta())
    await age(backend, store, GONE)

    assert list(await store.runs.renew("p1", [R1])) == []
    assert await store.runs.close_silent(NONE_AT_ALL) == {}
    assert (await found(store)).silent_ms is None


async def test_opening_again_gives_the_lease_to_the_new_producer(store: Store) -> None:
    await store.runs.open(R1, META, "p1")
    await store.runs.close(R1)
    await store.runs.open(R1, RunMeta(label="again"), "p2")

    assert list(await store.runs.renew("p1", [R1])) == []
    assert list(await store.runs.renew("p2", [R1])) == [R1]
    assert (await found(store)).meta == RunMeta(label="again")


async def test_a_lease_of_an_earlier_incarnation_does_not_hold_a_run_that_an_append_opened(
    backend: Backend, store: Store
) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await store.runs.close(R1)
    await append(store, make_event())
    await age(backend, store, GONE)

    assert list(await store.runs.renew("p1", [R1])) == []
    assert await store.runs.close_silent(NONE_AT_ALL) == {}
    run = await found(store)
    assert (run.status, run.silent_ms, run.closed_at_ms) == (RunActivity.RUNNING, None, None)


async def test_an_append_to_an_open_run_leaves_its_lease(store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")
    await append(store, make_event())

    assert list(await store.runs.renew("p1", [R1])) == [R1]


async def test_a_run_without_a_lease_can_be_adopted(backend: Backend, store: Store) -> None:
    await append(store, make_event())

    assert list(await store.runs.renew("p1", [R1], adopts=True)) == [R1]
    await age(backend, store, SEVEN_SECONDS)
    assert (await found(store)).status is RunActivity.STALE
    assert list(await store.runs.renew("p1", [R1])) == [R1]
    assert (await found(store)).status is RunActivity.RUNNING


async def test_an_adopted_run_is_closed_when_its_lease_expires(backend: Backend, store: Store) -> None:
    await append(store, make_event(), make_event())
    await store.runs.renew("p1", [R1], adopts=True)
    await age(backend, store, GONE)

    (head,) = (await store.runs.close_silent(GONE)).values()

    assert head.closed_seq == 2


async def test_a_run_leased_to_another_is_not_adopted(store: Store) -> None:
    await store.runs.open(R1, RunMeta(), "p1")

    assert list(await store.runs.renew("p2", [R1], adopts=True)) == []
    assert list(await store.runs.renew("p1", [R1])) == [R1]


async def test_a_closed_or_unknown_run_is_not_adopted(backend: Backend, store: Store) -> None:
    await append(store, make_event())
    closed = await store.runs.close(R1)

    assert list(await store.runs.renew("p1", [R1, R2], adopts=True)) == []
    await age(backend, store, GONE)
    assert await store.runs.close_silent(NONE_AT_ALL) == {}
    assert (await store.runs.heads([R1, R2])) == {R1: closed}


async def test_adopting_a_run_while_it_is_closed_reports_the_outcome(backend: Backend) -> None:
    held: list[RunId] = []

    async def adopt(store: Store) -> None:
        held.extend(await store.runs.renew("p1", runs, adopts=True))

    async def close(store: Store) -> None:
        for run_id in runs:
            await store.runs.close(run_id)

    async with two_stores(backend) as (one, other):
        runs = [RunId(f"r{n}") for n in range(10, 30)]
        await append(one, *(make_event(run_id) for run_id in runs))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close, other)
            tasks.start_soon(adopt, one)
        still_held = list(await one.runs.renew("p1", runs))
        left = await one.runs.close_silent(NONE_AT_ALL)

    assert (still_held, left) == ([], {})
    assert set(held) <= set(runs)


async def test_two_nodes_close_each_expired_run_once_at_the_same_seq(backend: Backend) -> None:
    closed: list[tuple[RunId, Head]] = []

    async def close(store: Store) -> None:
        closed.extend((await store.runs.close_silent(NONE_AT_ALL)).items())

    async with two_stores(backend) as stores:
        runs = await leased(stores[0], 20)
        async with anyio.create_task_group() as tasks:
            for store in stores:
                tasks.start_soon(close, store)
        heads = await stores[0].runs.heads(runs)

    assert sorted(run_id for run_id, _ in closed) == runs
    assert dict(closed) == heads


@pytest.mark.parametrize("is_renewed_first", [True, False])
async def test_a_renewal_that_races_with_the_close_reports_the_outcome(
    backend: Backend, is_renewed_first: bool
) -> None:
    held: list[RunId] = []
    closed: list[RunId] = []

    async def renew(store: Store) -> None:
        held.extend(await store.runs.renew("p1", runs))

    async def close(store: Store) -> None:
        closed.extend(await store.runs.close_silent(SEVEN_SECONDS))

    async with two_stores(backend) as (one, other):
        runs = await leased(one, 20)
        await age(backend, one, SEVEN_SECONDS)
        async with anyio.create_task_group() as tasks:
            for task in (renew, close) if is_renewed_first else (close, renew):
                tasks.start_soon(task, one if task is renew else other)
        still_open = [run.run_id for run in await one.runs.listed(OPEN_RUNS)]

    assert sorted([*held, *closed]) == runs
    assert sorted(held) == still_open


async def test_renewals_do_not_disturb_concurrent_appends_and_closes(store: Store) -> None:
    ended, *runs = await leased(store, 6)

    async def renew() -> None:
        for _ in range(20):
            assert sorted(await store.runs.renew("p1", runs)) == runs

    async def publish() -> None:
        for n in range(20):
            (outcome,) = await store.journal.append([request(*(make_event(run_id, n) for run_id in runs), opens=False)])
            entries(outcome)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(renew)
            tasks.start_soon(publish)
            await store.runs.close(ended)

    assert {head.last_seq for head in (await store.runs.heads(runs)).values()} == {20}
