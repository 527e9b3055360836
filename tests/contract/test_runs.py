"""The directory of runs."""

from contextlib import suppress

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.errors import BrokerOverflowError, RunNotFound, RunOpen, UsageError
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import LiveRun, RunMeta
from tests.contract.backends import Backend
from tests.contract.events import append, drain, fill, make_event, seqs, upto
from tests.deadlines import DEADLINE_S


async def test_an_open_run_cannot_be_opened(journal: Journal) -> None:
    await journal.open_run("r1")

    with pytest.raises(RunOpen, match="already open"):
        await journal.open_run("r1")


async def test_an_open_run_cannot_be_reaped(journal: Journal) -> None:
    await journal.open_run("r1")

    with pytest.raises(RunOpen, match="cannot reap open run"):
        await journal.reap("r1")


async def test_an_unknown_run_cannot_be_closed_or_reaped(journal: Journal) -> None:
    with pytest.raises(RunNotFound):
        await journal.close_run("r1")
    with pytest.raises(RunNotFound):
        await journal.reap("r1")


async def test_closing_again_changes_nothing(journal: Journal) -> None:
    await fill(journal, "r1", 2)
    await journal.close_run("r1")

    assert await journal.close_run("r1") == 2


async def test_open_runs_are_listed_with_their_identity_and_count(journal: Journal) -> None:
    await journal.open_run("r1", RunMeta(label="race", started_at="2026-05-21T10:00:00Z"))
    await journal.append([make_event(n=1), make_event(n=2)])
    await fill(journal, "r2", 1)
    await journal.close_run("r2")

    live = await journal.live_runs()

    assert live == [LiveRun(run_id=RunId("r1"), label="race", started_at="2026-05-21T10:00:00Z", n_events=2)]


async def test_runs_of_tape_itself_are_neither_listed_nor_for_users(journal: Journal, store: Store) -> None:
    await append(store, make_event("tape.value.00ff"))

    assert await journal.live_runs() == []
    with pytest.raises(UsageError, match="belong to Tape"):
        await journal.append(make_event("tape.value.00ff"))
    with pytest.raises(UsageError, match="belong to Tape"):
        await journal.close_run("tape.value.00ff")


async def test_opening_writes_no_entry(journal: Journal) -> None:
    await journal.open_run("r1")
    await journal.close_run("r1")

    assert await journal.head() == 0


async def test_a_reaped_run_keeps_its_numbers(journal: Journal) -> None:
    await fill(journal, "r1", 3)
    await journal.close_run("r1")
    await journal.reap("r1")

    (entry,) = await journal.append(make_event(n=4), open=True)

    assert entry.seq == 4


async def test_a_durable_store_keeps_what_is_reaped_and_a_bounded_one_names_the_gap(
    backend: Backend, journal: Journal
) -> None:
    await fill(journal, "r1", 3)
    await journal.close_run("r1")

    await journal.reap("r1")

    if not backend.is_bounded:
        assert seqs(await drain(journal.stream(run_id="r1"))) == upto(3)
        return
    with pytest.raises(BrokerOverflowError) as gap:
        await drain(journal.stream(run_id="r1"))
    assert gap.value.available_from == 4


async def test_a_life_begins_after_the_last_seq_of_the_one_before(journal: Journal, store: Store) -> None:
    await fill(journal, "r1", 3)
    await journal.close_run("r1")
    await journal.open_run("r1")

    head = (await store.runs.heads([RunId("r1")]))[RunId("r1")]

    assert (head.opened_seq, head.last_seq, head.is_open) == (3, 3, True)


async def test_cancelling_what_opens_or_closes_a_run_leaves_the_store_usable(journal: Journal) -> None:
    for n in range(20):
        with anyio.move_on_after(0.0002 * (n % 7)):
            await journal.open_run(f"r{n}")
        with anyio.move_on_after(0.0002 * (n % 5)), suppress(RunNotFound):
            await journal.close_run(f"r{n}")

    with anyio.fail_after(DEADLINE_S):
        (entry,) = await journal.append(make_event("after"), open=True)
    assert entry.seq == 1


async def test_a_life_that_begins_while_the_last_one_is_reaped_is_not_lost(journal: Journal) -> None:
    for n in range(10):
        await fill(journal, f"r{n}", 3)
        await journal.close_run(f"r{n}")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reap_if_closed, journal, f"r{n}")
            (entry,) = await journal.append(make_event(f"r{n}", 4), open=True)

        assert (await drain(journal.stream(run_id=f"r{n}", from_seq=4, follow=False))) == [entry]


async def reap_if_closed(journal: Journal, run_id: str) -> None:
    with suppress(RunOpen):
        await journal.reap(run_id)
