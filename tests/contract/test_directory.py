"""The directory of runs: find, list, order and status."""

from datetime import timedelta

from tape.core.ids import RunId
from tape.core.lease import GONE
from tape.core.ports import Store
from tape.core.run import RunActivity, RunMeta, RunRecord
from tape.core.run_query import CLOSED_RUNS, OPEN_RUNS
from tests.contract.ageing import age
from tests.contract.backends import Backend
from tests.contract.events import append, make_event

R1, R2, R3 = RunId("r1"), RunId("r2"), RunId("r3")
A_SECOND = timedelta(seconds=1)
META = RunMeta(label="race", started_at="2026-05-21T10:00:00Z", app="arena", user="ann", session="s-1")


async def found(store: Store, run_id: RunId = R1) -> RunRecord:
    record = await store.runs.find(run_id)
    assert record is not None
    return record


async def test_a_run_is_found_with_all_its_metadata(store: Store) -> None:
    await store.runs.open(R1, META, "p1")
    await append(store, make_event(n=1), make_event(n=2))

    run = await found(store)

    assert (run.run_id, run.meta, run.status, run.is_reaped) == (R1, META, RunActivity.RUNNING, False)
    assert run.head == (await store.runs.heads([R1]))[R1]
    assert run.closed_at_ms is None


async def test_a_run_that_an_append_opened_is_found_without_a_lease(store: Store) -> None:
    (entry,) = await append(store, make_event())

    run = await found(store)

    assert (run.meta, run.silent_ms, run.opened_at_ms) == (RunMeta(), None, entry.ts_ms)


async def test_what_never_was_is_not_found(store: Store) -> None:
    assert await store.runs.find(R1) is None


async def test_a_closed_run_is_complete_since_a_time_no_earlier_than_its_opening(store: Store) -> None:
    await store.runs.open(R1, META, "p1")
    await store.runs.close(R1)

    run = await found(store)

    assert (run.status, run.meta, run.silent_ms) == (RunActivity.COMPLETE, META, None)
    assert run.closed_at_ms is not None
    assert run.closed_at_ms >= run.opened_at_ms


async def test_open_runs_are_listed_as_they_were_opened(backend: Backend, store: Store) -> None:
    await store.runs.open(R2, RunMeta())
    await age(backend, store, A_SECOND)
    await append(store, make_event("r1"), make_event("tape.value.00ff"))
    await age(backend, store, A_SECOND)
    await store.runs.open(R3, META, "p1")

    runs = await store.runs.listed(OPEN_RUNS)

    assert [run.run_id for run in runs] == [R2, R1, R3]
    assert runs[:2] == [await found(store, run_id) for run_id in (R2, R1)]
    assert [run.run_id for run in await store.runs.listed(OPEN_RUNS, limit=2)] == [R2, R1]


async def test_closed_runs_are_listed_newest_first_and_the_reaped_among_them(backend: Backend, store: Store) -> None:
    for run_id in (R1, R3, R2):
        await append(store, make_event(run_id))
        await store.runs.close(run_id)
        await age(backend, store, A_SECOND)
    await store.runs.reap(R3)

    runs = await store.runs.listed(CLOSED_RUNS)

    assert [(run.run_id, run.is_reaped) for run in runs] == [(R2, False), (R3, True), (R1, False)]
    assert runs == [await found(store, run.run_id) for run in runs]
    assert list(await store.runs.listed(CLOSED_RUNS, limit=1)) == runs[:1]
    assert list(await store.runs.listed(CLOSED_RUNS, limit=0)) == []


async def test_a_run_that_an_append_opened_again_is_listed_among_the_open_only(store: Store) -> None:
    await append(store, make_event())
    await store.runs.close(R1)
    await store.runs.reap(R1)
    await append(store, make_event())

    (run,) = await store.runs.listed(OPEN_RUNS)

    assert (run.run_id, run.is_reaped, run.closed_at_ms) == (R1, False, None)
    assert await store.runs.listed(CLOSED_RUNS, limit=5) == []


async def test_a_silent_run_is_listed_once_closed(backend: Backend, store: Store) -> None:
    await store.runs.open(R1, META, "p1")
    await age(backend, store, GONE)
    await store.runs.close_silent(GONE)

    assert await store.runs.listed(OPEN_RUNS) == []
    assert [run.run_id for run in await store.runs.listed(CLOSED_RUNS)] == [R1]
