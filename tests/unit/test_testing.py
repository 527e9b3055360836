"""What `tape.testing` promises to those who test with it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import tape
from tape.core.run_state import RunState, RunStatus
from tape.core.task import TaskStatus
from tape.reactions import Dead, Envelope, collected
from tape.testing import Clock, Faults, TestNode, assert_entries, open_node

HOUR = timedelta(hours=1)
PLACED = "/tape/event/placed/**"


@pytest.fixture(autouse=True)
def _nothing_collected() -> Iterator[None]:
    """Decorators of one test are not those of the next."""
    collected.clear()
    yield
    collected.clear()


def given_bill() -> list[object]:
    """A handler of placed orders, and the payloads that it got."""
    handled: list[object] = []

    @tape.on(PLACED, retry_backoff_ms=60_000)
    def bill(envelope: Envelope) -> None:
        handled.append(envelope.payload)

    return handled


async def test_time_stands_still_until_it_is_moved() -> None:
    async with open_node() as node:
        first = await node.publish("r", 1)
        node.clock.advance(HOUR)
        second = await node.publish("r", 2)

    assert first.ts_ms == datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1000
    assert second.ts_ms - first.ts_ms == 3_600_000


def test_a_clock_goes_forward_only() -> None:
    with pytest.raises(tape.UsageError, match="goes forward"):
        Clock().advance(-HOUR)


def test_a_clock_needs_a_time_zone() -> None:
    with pytest.raises(tape.UsageError, match="time zone"):
        Clock(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the mistake


async def test_no_handler_runs_before_run_due() -> None:
    handled = given_bill()

    async with open_node() as node:
        await node.publish("order-1", {"price": 40}, type="placed")
        before = list(handled)
        done = await node.run_due()

    assert (before, done, handled) == ([], 1, [{"price": 40}])


async def test_a_failed_attempt_comes_again_when_its_time_has_come() -> None:
    attempts: list[datetime] = []

    @tape.on(PLACED, retry_backoff_ms=60_000)
    async def fail_once(envelope: Envelope) -> None:
        attempts.append(node.clock.now)
        if len(attempts) == 1:
            raise OSError

    async with open_node() as node:
        await node.publish("order-1", type="placed")
        await node.run_due()
        await node.advance(timedelta(seconds=30))
        too_soon = len(attempts)
        await node.advance(timedelta(seconds=60))

    assert (too_soon, len(attempts)) == (1, 2)
    assert timedelta(seconds=54) <= attempts[1] - attempts[0] <= timedelta(seconds=66)


async def test_advancing_ends_at_its_time_and_runs_each_thing_at_its_own() -> None:
    seen: list[datetime] = []

    @tape.on(PLACED, debounce_ms=10_000)
    async def note(envelope: Envelope) -> None:
        seen.append(node.clock.now)

    async with open_node() as node:
        began = node.clock.now
        await node.publish("order-1", type="placed")
        await node.advance(HOUR)

    assert seen == [began + timedelta(seconds=10)]
    assert node.clock.now == began + HOUR


async def test_quiescence_is_reached_when_every_task_is_done_or_dead() -> None:
    @tape.on(PLACED, retry_max=3, dlq_after_n=9, retry_backoff_ms=1_000)
    def refuse(envelope: Envelope) -> None:
        raise OSError("the bank is closed")

    async with open_node() as node:
        await node.publish("order-1", type="placed")
        done = await node.quiesce()
        (task,) = await node.tasks()

    assert (done, task.status, task.attempts, task.last_error) == (4, TaskStatus.DLQ, 4, "OSError: the bank is closed")


async def test_a_rate_limit_holds_by_the_clock_of_the_test() -> None:
    given_bill()

    @tape.on(PLACED, rate_limit_per_s=1, max_concurrency=100)
    async def note(envelope: Envelope) -> None:
        return

    async with open_node(note) as node:
        began = node.clock.now
        for _ in range(5):
            await node.publish("order-1", type="placed")
        await node.quiesce()

    assert node.clock.now - began >= timedelta(seconds=3)


async def test_what_a_handler_says_is_handled_too() -> None:
    @tape.on(PLACED)
    async def pay(envelope: Envelope) -> None:
        await node.journal.append(tape.Event(run_id=envelope.run_id, type="paid", payload=envelope.payload))

    @tape.on("/tape/event/paid/**")
    async def ship(envelope: Envelope) -> None:
        await node.journal.append(tape.Event(run_id=envelope.run_id, type="shipped", payload=None))

    async with open_node() as node:
        await node.publish("order-1", {"price": 40}, type="placed")
        await node.quiesce()

        await node.assert_entries([{"type": "placed"}, {"type": "paid"}, {"type": "shipped"}], run_id="order-1")


async def test_only_the_handlers_that_are_named_run() -> None:
    handled = given_bill()

    @tape.on(PLACED)
    def count(envelope: Envelope) -> None:
        return

    async with open_node(count) as node:
        await node.publish("order-1", type="placed")

        assert (await node.run_due(), handled) == (1, [])


async def test_a_function_without_a_decorator_is_refused_by_name() -> None:
    with pytest.raises(tape.UsageError, match="given_bill handles nothing"):
        async with open_node(given_bill):
            raise AssertionError


async def test_entries_that_differ_are_shown_side_by_side() -> None:
    async with open_node() as node:
        await node.publish("order-1", {"price": 40, "item": "lamp"}, type="placed")
        entries = await node.entries()

    assert_entries(entries, [{"type": "placed", "payload": {"price": 40}}])
    with pytest.raises(AssertionError) as caught:
        assert_entries(entries, [{"payload": {"price": 41}}])
    assert "- payload={'price': 41}" in str(caught.value)
    assert "+ payload={'price': 40, 'item': 'lamp'}" in str(caught.value)


@pytest.mark.parametrize("expected", [[], [{"type": "placed"}, {"type": "placed"}]])
async def test_neither_more_nor_fewer_entries_will_do(expected: list[dict[str, str]]) -> None:
    async with open_node() as node:
        await node.publish("order-1", type="placed")

        with pytest.raises(AssertionError, match="the entries are others"):
            await node.assert_entries(expected)


async def test_dead_tasks_are_named_and_can_be_replayed() -> None:
    @tape.on(PLACED)
    def refuse(envelope: Envelope) -> None:
        raise Dead("no such account")

    async with open_node() as node:
        await node.publish("order-1", type="placed")
        await node.quiesce()

        with pytest.raises(AssertionError, match="no such account"):
            await node.assert_no_dead()
        assert (await node.replay_dead(), await node.quiesce()) == (1, 1)


async def faulty_story(seed: int) -> tuple[list[tuple[datetime, object]], int]:
    """What a handler got under faults and when, and how many there were."""
    collected.clear()
    handled: list[tuple[datetime, object]] = []

    @tape.on(PLACED, retry_backoff_ms=60_000)
    async def bill(envelope: Envelope) -> None:
        handled.append((node.clock.now, envelope.payload))

    async with open_node(faults=Faults(seed=seed, append=0.5, handler=0.5)) as node:
        for price in range(20):
            await node.publish(f"order-{price}", price, type="placed")
        await node.quiesce()
        await node.assert_no_dead()
        await node.assert_entries([{"payload": price} for price in range(20)], PLACED)
    return handled, node.faults.struck


async def test_the_same_seed_gives_the_same_faults_at_the_same_times() -> None:
    assert await faulty_story(7) == await faulty_story(7)
    assert await faulty_story(7) != await faulty_story(8)


async def faulty_runs(seed: int) -> tuple[list[object], int]:
    """What durable functions saw of the time under faults, and how many there were; the rest of it is chance."""
    seen: list[object] = []

    async def look(run: RunState) -> None:
        seen.append((run.run_id, await tape.now()))
        await tape.uuid()
        await wire(await tape.random())

    async with open_node(agents={"treasury": look}, faults=Faults(seed=seed, append=0.4)) as node:
        for number in range(5):
            await insist(partial(node.client.runs.begin, "treasury", "ann", "s", str(number)))
        await insist(node.quiesce)
    return seen, node.faults.struck


async def insist(ask: Callable[[], Awaitable[object]]) -> object:
    """Asks until there is an answer, which a fault can only put off."""
    for _ in range(1_000):
        with suppress(tape.Unavailable):
            return await ask()
    raise AssertionError


async def test_the_same_seed_gives_durable_functions_the_same_faults() -> None:
    assert await faulty_runs(7) == await faulty_runs(7)
    assert (await faulty_runs(7))[1] > 0


@pytest.mark.parametrize("seed", range(5))
async def test_under_faults_nothing_is_lost_and_something_is_repeated(seed: int) -> None:
    handled, struck = await faulty_story(seed)

    assert {price for _, price in handled} == set(range(20))
    assert len(handled) > 20 and struck > 10


async def test_a_lost_answer_is_reported_as_unknown_and_the_entry_is_there() -> None:
    async with open_node(faults=Faults(append=1.0, most=1)) as node:
        outcomes = [await outcome(node, n) for n in range(40)]
        written = [entry.payload for entry in await node.entries()]

    assert set(outcomes) == {"unknown", "nothing"}
    assert written == [n for n, outcome in enumerate(outcomes) if outcome == "unknown"]


async def outcome(node: TestNode, payload: int) -> str:
    with pytest.raises(tape.Unavailable) as caught:
        await node.journal.append(tape.Event(run_id="r", payload=payload), open=True)
    return caught.value.outcome


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_share_of_faults_is_from_0_to_1(rate: float) -> None:
    with pytest.raises(tape.UsageError, match="from 0 to 1"):
        Faults(handler=rate)


async def test_durable_functions_see_the_time_of_the_test() -> None:
    seen: list[object] = []

    async def look(run: RunState) -> None:
        seen.append(await tape.now())

    async with open_node(agents={"treasury": look}) as node:
        await node.advance(HOUR)
        await node.client.runs.begin("treasury", "ann", "s", "1")
        await node.run_due()

    assert seen == [(datetime(2030, 1, 1, tzinfo=UTC) + HOUR).timestamp()]


async def test_durable_functions_run_and_their_timers_fire_by_the_clock_of_the_test() -> None:
    async def wait(run: RunState) -> object:
        return await tape.gate("approval")

    async with open_node(agents={"treasury": wait}) as node:
        run = (await node.client.runs.begin("treasury", "ann", "s", "1")).run
        began = node.clock.now
        due = node.clock.now_ms() + 3_600_000
        await node.client.timers.set(run.run_id, "late", due, "gate_timeout", {"gate": "approval"})
        await node.quiesce()
        ended = await node.client.runs.get(run.run_id)

    assert (ended.status, node.clock.now - began) == (RunStatus.TERMINAL, HOUR)


TRIES: list[int] = []


def recall(receipt: object, amount: int) -> None:
    """Undoes a wire, the third time it is asked to."""
    TRIES.append(amount)
    if len(TRIES) < 3:
        raise OSError


@tape.effect(compensate=recall)
def wire(amount: int) -> str:
    return "sent"


async def test_what_undoes_an_effect_is_tried_again_until_it_holds() -> None:
    TRIES.clear()

    async def fail(run: RunState) -> None:
        await wire(7)
        raise ValueError("no such account")

    async with open_node(agents={"treasury": fail}) as node:
        await node.client.runs.begin("treasury", "ann", "s", "1")
        before, at_once = node.clock.now, await node.run_due()
        await node.quiesce()

    assert (at_once, TRIES) == (2, [7, 7, 7])
    assert node.clock.now > before


async def test_a_run_whose_worker_fell_silent_is_taken_up_when_its_lease_has_ended() -> None:
    async def say(run: RunState) -> str:
        return "done"

    async with open_node(agents={"treasury": say}) as node:
        begun = await node.client.runs.begin("treasury", "ann", "s", "1", owner="silent")
        before = await node.run_due()
        await node.advance(timedelta(minutes=3))
        ended = await node.client.runs.get(begun.run.run_id)

    assert (before, ended.status) == (0, RunStatus.TERMINAL)
