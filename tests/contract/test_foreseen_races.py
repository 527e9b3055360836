"""What a matcher has under way while a match is written with its entry: it is decided on what was, or decided again."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NoReturn

import anyio
import asyncpg
import pytest
from anyio.lowlevel import checkpoint

from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.matched import MatchedPage, Recorded
from tape.core.ports import Page, Store
from tape.core.subject import Pattern
from tape.core.task import TaskStatus
from tape.matcher.dispatcher import Crew, Dispatcher
from tape.matcher.matcher import Matcher
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tape.work.loop import Loop
from tests.conftest import Scale
from tests.contract.foreseeing import JOURNAL_LOCK, Companion, OpenHands, appending, ready
from tests.contract.reacting import Hands, catch_up, match, publish, reaction, settle, sources, tasks
from tests.patience import PATIENCE_S

HELD = "SELECT 1 FROM tape_tasks WHERE task_id = :task_id FOR UPDATE"
WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    async with open_store(postgres_url) as store:
        yield store


class Gate:
    """Somebody comes to it, and waits until it is opened."""

    def __init__(self) -> None:
        self.is_open, self.is_reached = anyio.Event(), anyio.Event()
        self.is_open.set()

    def shut(self) -> None:
        self.is_open, self.is_reached = anyio.Event(), anyio.Event()

    async def passed(self) -> None:
        self.is_reached.set()
        await self.is_open.wait()


class SlowSource:
    """A journal that is read when a gate opens, unless it is away."""

    def __init__(self, store: Store) -> None:
        self.gate = Gate()
        self.is_away = False
        self._journal = store.journal

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        await self.gate.passed()
        if self.is_away:
            raise Unavailable("the journal is away")
        return await self._journal.read(after, pattern=pattern)

    async def wait(self, beyond: GlobalSeq) -> None:
        await self._journal.wait(beyond)


class SlowHands(Hands):
    """Hands that make room when a gate opens."""

    def __init__(self, *names: str) -> None:
        super().__init__(100, *names)
        self.gate = Gate()

    async def room(self, count: int) -> None:
        await self.gate.passed()


class LateAnswers:
    """Tells a matcher only when it is told to what became of what it has foreseen."""

    def __init__(self, matcher: Matcher) -> None:
        self.foresee = matcher.foresee
        self._matcher = matcher
        self._answers: list[tuple[MatchedPage, Recorded | None]] = []

    def answer(self, page: MatchedPage, recorded: Recorded | None) -> None:
        self._answers.append((page, recorded))

    def tell(self) -> None:
        for answer in self._answers:
            self._matcher.answer(*answer)


async def stepped(companion: Companion) -> None:
    await companion.step()


async def test_p10_a_page_that_was_read_meanwhile_gives_nothing_twice(store: Store, postgres_url: str) -> None:
    hands, source = Hands(), SlowSource(store)
    companion = await ready(store, hands, source)
    source.gate.shut()

    with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group, open_store(postgres_url) as elsewhere:
            group.start_soon(stepped, companion)
            await source.gate.is_reached.wait()
            await publish(store, 1)
            await publish(elsewhere, 1)
            source.gate.is_open.set()
    await catch_up(companion)

    assert [task.source_global_seq for task in hands.given] == [3, 4]
    assert [await settle(store, task) for task in hands.given] == [None, None]


async def test_p10_a_page_that_waited_for_room_meanwhile_gives_nothing_twice(store: Store) -> None:
    hands = SlowHands("rule")
    companion = await ready(store, hands)
    late = LateAnswers(companion)
    with store.reactions.accompanied(late):
        await publish(store, 1)
    hands.gate.shut()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stepped, companion)
            await hands.gate.is_reached.wait()
            late.tell()
            hands.gate.is_open.set()
    await catch_up(companion)

    assert [task.source_global_seq for task in hands.given] == [3]


async def test_p10_who_catches_up_meanwhile_moves_no_cursor_back(store: Store) -> None:
    """Who is behind waits for room with a page, while an entry of the others is written with its match."""
    hands = SlowHands("rule", "late")
    companion = await ready(store, hands)
    await publish(store, 1)
    await catch_up(companion)
    await store.reactions.register(reaction("late"))
    await publish(store, 1, "/elsewhere")
    hands.gate.shut()

    with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(stepped, companion)
            await hands.gate.is_reached.wait()
            await publish(store, 1)
            hands.gate.is_open.set()
    await catch_up(companion)

    assert sorted((task.reaction_id, task.source_global_seq) for task in hands.given) == [
        ("late", 3), ("late", 6), ("rule", 3), ("rule", 6)
    ]  # fmt: skip
    assert companion.answers == []


async def test_p10_who_has_forgotten_everything_is_told_everything_again(store: Store) -> None:
    """A matcher loses its connection while an entry is on its way with its match."""
    hands, source = OpenHands(), SlowSource(store)
    companion = await ready(store, hands, source)
    late = LateAnswers(companion)
    with store.reactions.accompanied(late):
        await publish(store, 1)
    source.is_away = True

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(companion.run)
            while companion.forces:  # noqa: ASYNC110 - only asking can tell
                await anyio.sleep(0.01)
            late.tell()
            group.cancel_scope.cancel()
    source.is_away = False
    await publish(store, 1)
    await catch_up(companion)

    assert await sources(store) == [3, 4] and hands.promises == 0


async def test_p10_an_appender_that_is_cancelled_with_a_match_on_its_way_keeps_no_promise(
    store: Store, postgres_url: str
) -> None:
    hands = OpenHands()
    companion = await ready(store, hands)
    async with locked(postgres_url) as lock:
        with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(publish, store, 1)
                await appending(lock)
                group.cancel_scope.cancel()
    assert (companion.answers, hands.promises) == ([None], 0)

    with store.reactions.accompanied(companion):
        await publish(store, 1)
    await catch_up(companion)

    page = await store.journal.read(GlobalSeq(2))
    assert await sources(store) == [entry.global_seq for entry in page.entries]


async def test_p12_a_loop_that_stops_ends_what_is_on_its_way(store: Store, postgres_url: str) -> None:
    loop = Loop(store.tasks, {"rule": handler(lambda: None)}, owner="me")
    companion = await ready(store, loop)
    with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group, locked(postgres_url) as lock:
            group.start_soon(loop.run)
            while (want := loop.wanted()) is None:
                await checkpoint()
            loop.take(want, ())
            group.start_soon(publish, store, 1)
            await appending(lock)
            loop.stop()

    assert await sources(store, status=TaskStatus.DONE) == [3]


class Floor:
    """Where two nodes work, and everybody who is at work is counted."""

    def __init__(self) -> None:
        self.at_once = self.most = 0
        self.attempts: Counter[tuple[int, int]] = Counter()

    async def handle(self, envelope: Envelope) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.sleep(0.002)
        self.at_once -= 1
        self.attempts[envelope.global_seq, envelope.attempt] += 1
        if envelope.global_seq % 7 == 0 and envelope.attempt == 1:
            raise ZeroDivisionError

    async def node(self, url: str, run_id: str, count: int) -> None:
        """Says so many things, one after the other, and works until everything is done."""
        async with open_store(url) as store, run_journal(store) as journal:
            dispatcher = Dispatcher(store, Crew(handlers={"rule": handler(self.handle)}, slots=4), journal)
            async with background(partial(forever, dispatcher.run)):
                for number in range(count):
                    await journal.append(Event(run_id=run_id, payload=number, subject="/a/b"), open=True)
                while len(await sources(store, status=TaskStatus.DONE)) < 2 * count:  # noqa: ASYNC110 - only asking can tell
                    await anyio.sleep(0.05)


async def forever(run: Callable[[], Awaitable[object]]) -> NoReturn:
    await run()
    raise AssertionError("it was not told to stop")


async def test_p13_limits_hold_while_two_nodes_say_and_do_and_a_third_meddles(
    store: Store, postgres_url: str, scale: Scale
) -> None:
    floor, count = Floor(), scale(100)
    await store.reactions.register(reaction(max_concurrency=2, retry_backoff_ms=1))
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(floor.node, postgres_url, "one", count)
            group.start_soon(floor.node, postgres_url, "two", count)
            for turn in range(scale(20)):
                await store.reactions.pause("rule", "lunch")
                shards, most = 1 + turn % 5, 2 + turn % 2
                await store.reactions.register(reaction(max_concurrency=most, num_shards=shards, retry_backoff_ms=1))
                await store.reactions.resume("rule")

    assert floor.most <= 3 and set(floor.attempts.values()) == {1}
    assert {(task.status, task.attempts) for task in await tasks(store) if task.source_global_seq % 7} == {
        (TaskStatus.DONE, 1)
    }


async def test_who_changes_shards_and_who_settles_never_wait_in_a_ring(store: Store, postgres_url: str) -> None:
    await store.reactions.register(reaction())
    await publish(store, 2)
    await match(store)
    first, second = await tasks(store)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group, store.transaction() as tx:
            await tx.fetch(HELD, {"task_id": second.task_id})
            group.start_soon(store.reactions.register, reaction(num_shards=4))
            while not await tx.fetch(WAITING, {}):  # noqa: ASYNC110 - only asking can tell
                await anyio.sleep(0.01)
            await tx.fetch(HELD, {"task_id": first.task_id})

    found = await store.reactions.find("rule")
    assert found is not None and found.reaction.num_shards == 4


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that holds the journal's lock, so that nobody appends."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(JOURNAL_LOCK)
        yield connection
    finally:
        await connection.close()
