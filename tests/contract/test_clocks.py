"""Leases are by the clock of the database, whatever the clock of a worker shows."""

import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest

from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.matcher.matcher import Matcher
from tests.contract.ageing import age
from tests.contract.backends import Backend
from tests.contract.events import append, make_event
from tests.contract.reactions import LONG, RecordingSlots, catch_up, claim, match, publish, reaction, tasks

TOLERANCE_MS = 5 * 60_000
SHIFTS = [timedelta(minutes=-30), timedelta(minutes=30)]

GoWrong = Callable[[], None]

pytestmark = pytest.mark.parametrize("backend", ["postgres"], indirect=True)


@pytest.fixture(params=SHIFTS, ids=["behind", "ahead"])
def go_wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GoWrong:
    """Sets the clock of this process; the database has its own."""
    wrong = SimpleNamespace(time_ns=lambda: time.time_ns() + request.param // timedelta(microseconds=1) * 1_000)
    return lambda: monkeypatch.setattr("tape.store.clock.time", wrong)


def is_a_lease_from_now(expires_at_ms: int, lease: timedelta = LONG) -> bool:
    expected = time.time_ns() // 1_000_000 + lease // timedelta(milliseconds=1)
    return abs(expires_at_ms - expected) <= TOLERANCE_MS


async def test_p11_a_task_is_claimed_by_the_clock_of_the_database(store: Store, go_wrong: GoWrong) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    go_wrong()

    (task,) = await claim(store)

    assert is_a_lease_from_now(task.lease_expires_at_ms)


async def test_p11_a_lease_is_extended_by_the_clock_of_the_database(store: Store, go_wrong: GoWrong) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    await match(store)
    (task,) = await claim(store)
    go_wrong()

    assert await store.tasks.extend([task.claim], LONG) == [None]

    (extended,) = await tasks(store)
    assert is_a_lease_from_now(extended.lease_expires_at_ms)


async def test_p12_a_task_is_due_by_the_clock_of_the_database(store: Store, go_wrong: GoWrong) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    go_wrong()

    await match(store)

    (task,) = await claim(store)
    assert is_a_lease_from_now(task.created_at_ms, timedelta(0))


async def test_p11_a_task_that_is_claimed_as_it_is_matched_is_leased_by_the_clock_of_the_database(
    store: Store, go_wrong: GoWrong
) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    slots = RecordingSlots()
    go_wrong()

    await catch_up(Matcher(store, slots=slots))

    (started,), (stored,) = slots.started, await tasks(store)
    assert started.lease_expires_at_ms == stored.lease_expires_at_ms
    assert is_a_lease_from_now(stored.lease_expires_at_ms)


async def test_a_producer_renews_its_lease_by_the_clock_of_the_database(
    backend: Backend, store: Store, go_wrong: GoWrong
) -> None:
    run = RunId("r1")
    await store.runs.open(run, RunMeta(), "producer")
    go_wrong()

    await store.runs.renew("producer", [run])

    assert await store.runs.close_silent(timedelta(minutes=5)) == {}
    await age(backend, store, timedelta(minutes=10))
    assert list(await store.runs.close_silent(timedelta(minutes=5))) == [run]


async def test_p11_a_ledger_has_the_clock_of_the_database(store: Store, go_wrong: GoWrong) -> None:
    go_wrong()

    now = (await store.cells.snapshot(())).now_ms

    assert is_a_lease_from_now(now, timedelta(0))


async def test_time_never_falls_along_positions_whatever_the_clock_of_a_node_shows(
    store: Store, go_wrong: GoWrong
) -> None:
    before = [await append(store, make_event("one", n)) for n in range(2)]
    go_wrong()

    after = [await append(store, make_event(run_id, 2)) for run_id in ("one", "other", "other", "one")]

    times = [entry.ts_ms for entries in (*before, *after) for entry in entries]
    assert times == sorted(times) and len(times) == 6
