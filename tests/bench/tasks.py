"""Tasks against pgqueuer and a loop written by hand: everything put in and then worked off, and one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from statistics import quantiles
from time import perf_counter
from typing import TypeAlias

import asyncpg

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.reaction import Reaction
from tape.matcher.dispatcher import Crew, Dispatcher
from tape.matcher.matcher import Matcher
from tape.store.postgres.store import open_store
from tape.work.handler import handler
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.servers import journal_url, postgres

Handle: TypeAlias = Callable[[], Awaitable[None]]

AREA = "tasks"
TASKS = 10_000
BATCH = 1_000
SINGLES = 120
PAUSE_S = 0.03
WARM = 20
MATCHED = 20_000
PAYLOAD: JsonValue = {"number": 1, "status": "confirmed"}
TEXT = b'{"number": 1, "status": "confirmed"}'

TABLE = """
CREATE TABLE work (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL,
                   status int NOT NULL DEFAULT 1, owner text, attempts int NOT NULL DEFAULT 0, leased timestamptz);
CREATE INDEX work_due ON work (id) WHERE status = 1;
"""
TAKE = """
UPDATE work SET status = 2, owner = 'me', attempts = attempts + 1, leased = now() + interval '60 s'
WHERE id IN (SELECT id FROM work WHERE status = 1 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id, payload
"""
FINISH = "UPDATE work SET status = 3 WHERE id = ANY ($1::bigint[]) AND status = 2 AND owner = 'me'"


def comparisons() -> list[Comparison]:
    return [
        _row("end to end against pgqueuer", partial(ours, False), partial(pgqueuer, False), Goal(">=", 3)),
        _row("processing against pgqueuer", partial(ours, True), partial(pgqueuer, True), Goal(">=", 4)),
        _row("end to end against SKIP LOCKED by hand", partial(ours, False), partial(by_hand, False), Goal(">=", 0.6)),
        _pick_up("idle pick-up p50 against pgqueuer", 50, Goal("<=", 0.5)),
        _pick_up("idle pick-up p99 against pgqueuer", 99, Goal("<=", 0.7)),
        _matching("matcher with 1,000 reactions against 10", 1_000),
        _matching("matcher with 10,000 reactions against 10", 10_000),
    ]


def _row(name: str, one: Side, other: Side, goal: Goal) -> Comparison:
    return Comparison(area=AREA, name=name, unit="tasks/s", ours=one, peer=other, goal=goal)


def _pick_up(name: str, percent: int, goal: Goal) -> Comparison:
    one, other = partial(pick_up, percent), partial(pick_up_pgqueuer, percent)
    return Comparison(area=AREA, name=name, unit="ms", ours=one, peer=other, goal=goal)


def _matching(name: str, reactions: int) -> Comparison:
    one, other = partial(matching, reactions), partial(matching, 10)
    return Comparison(area=AREA, name=name, unit="entries/s", ours=one, peer=other)


def matching(reactions: int) -> float:
    """How fast a journal is read past reactions of which ten match one entry in a hundred."""
    return run(_match(reactions))


async def _match(reactions: int) -> float:
    with journal_url() as url:
        async with open_store(url) as store, run_journal(store) as journal:
            for number in range(reactions):
                await store.reactions.register(_quiet_reaction(number))
            matcher = Matcher(store)
            while await matcher.step():
                pass
            for first in range(0, MATCHED, BATCH):
                await journal.append([_numbered(number) for number in range(first, first + BATCH)], open=True)
            began = perf_counter()
            while await matcher.step():
                pass
            return MATCHED / (perf_counter() - began)


def _quiet_reaction(number: int) -> Reaction:
    return Reaction(
        reaction_id=f"rule-{number}", subject_pattern=f"/orders/{number}/**", predicate_cel="payload.number % 100 == 0"
    )


def _numbered(number: int) -> Event:
    return Event(run_id="run-1", payload={"number": number}, subject=f"/orders/{number % 10}/new")


def ours(is_processing: bool) -> float:
    return run(_ours(is_processing))


def by_hand(is_processing: bool) -> float:
    return run(_by_hand(is_processing))


def pgqueuer(is_processing: bool) -> float:
    return run(_pgqueuer(is_processing))


def pick_up(percent: int) -> float:
    return percentile(run(_pick_ups()), percent)


def pick_up_pgqueuer(percent: int) -> float:
    return percentile(run(_pick_ups_pgqueuer()), percent)


class Count:
    """Says when so many were handled."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.is_done = asyncio.Event()

    async def one(self) -> None:
        self._left -= 1
        if not self._left:
            self.is_done.set()


async def _ours(is_processing: bool) -> float:
    count = Count(TASKS)
    with journal_url() as url:
        async with open_store(url) as store, run_journal(store) as journal:
            await store.reactions.register(_reaction())
            dispatcher = Dispatcher(store, Crew(handlers={"rule": handler(count.one)}, slots=2_000), journal)
            began = perf_counter()
            for _ in range(TASKS // BATCH):
                await journal.append([_event() for _ in range(BATCH)], open=True)
            put_in = perf_counter()
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(dispatcher.run())
                await count.is_done.wait()
                dispatcher.loop.stop()
                await working
            ended = perf_counter()
    return TASKS / (ended - (put_in if is_processing else began))


async def _by_hand(is_processing: bool) -> float:
    with journal_url() as url:
        connection = await asyncpg.connect(url)
        await connection.execute(TABLE)
        began = perf_counter()
        for _ in range(TASKS // BATCH):
            await connection.executemany("INSERT INTO work (payload) VALUES ($1)", [(TEXT,)] * BATCH)
        put_in = perf_counter()
        while taken := await connection.fetch(TAKE, BATCH):
            await connection.execute(FINISH, [row["id"] for row in taken])
        ended = perf_counter()
        await connection.close()
    return TASKS / (ended - (put_in if is_processing else began))


async def _pgqueuer(is_processing: bool) -> float:
    from pgqueuer import AsyncpgPoolDriver, Queries, QueueManager
    from pgqueuer.types import QueueExecutionMode

    with _quiet(), _empty_url() as url:
        async with asyncpg.create_pool(url) as pool:
            queries = Queries(AsyncpgPoolDriver(pool))
            await queries.install()
            manager, count = QueueManager(queries), Count(TASKS)
            manager.entrypoint("rule")(_taking(count.one))
            began = perf_counter()
            for _ in range(TASKS // BATCH):
                await queries.enqueue(["rule"] * BATCH, [TEXT] * BATCH, [0] * BATCH)
            put_in = perf_counter()
            await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
            ended = perf_counter()
            assert count.is_done.is_set()
    return TASKS / (ended - (put_in if is_processing else began))


async def _pick_ups() -> list[float]:
    waits = Waits()
    with journal_url() as url:
        async with open_store(url) as store, run_journal(store) as journal:
            await store.reactions.register(_reaction())
            dispatcher = Dispatcher(store, Crew(handlers={"rule": handler(waits.end)}), journal)
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(dispatcher.run())
                await waits.all(partial(_append_one, journal))
                dispatcher.loop.stop()
                await working
    return waits.found


async def _pick_ups_pgqueuer() -> list[float]:
    from pgqueuer import AsyncpgPoolDriver, Queries, QueueManager

    waits = Waits()
    with _quiet(), _empty_url() as url:
        async with asyncpg.create_pool(url) as pool, asyncio.TaskGroup() as tasks:
            queries = Queries(AsyncpgPoolDriver(pool))
            await queries.install()
            manager = QueueManager(queries)
            manager.entrypoint("rule")(_taking(waits.end))
            working = tasks.create_task(manager.run(batch_size=10, dequeue_timeout=timedelta(seconds=1)))
            await waits.all(lambda: queries.enqueue(["rule"], [TEXT], [0]))
            manager.shutdown.set()
            await working
    return waits.found


class Waits:
    """How long each of some single things took from before it was said until it was handled."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._began = 0.0
        self._has_ended = asyncio.Event()

    async def end(self) -> None:
        self.found.append(perf_counter() - self._began)
        self._has_ended.set()

    async def all(self, say: Callable[[], Awaitable[object]]) -> None:
        for _ in range(WARM + SINGLES):
            await asyncio.sleep(PAUSE_S)
            self._has_ended.clear()
            self._began = perf_counter()
            await say()
            await self._has_ended.wait()
        del self.found[:WARM]


async def _append_one(journal: Journal) -> None:
    await journal.append(_event(), open=True)


def _reaction() -> Reaction:
    return Reaction(reaction_id="rule", subject_pattern="/orders/**", max_concurrency=10_000)


def _event() -> Event:
    return Event(run_id="run-1", payload=PAYLOAD, subject="/orders/new")


def _taking(handle: Handle) -> Callable[[object], Awaitable[None]]:
    async def take(job: object) -> None:
        await handle()

    return take


@contextmanager
def _empty_url() -> Iterator[str]:
    server = postgres()
    with server.database() as url:
        yield url


@contextmanager
def _quiet() -> Iterator[None]:
    """A peer that tells of every job would be measured by its logger."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def percentile(waits: list[float], percent: int) -> float:
    return quantiles(waits, n=100)[percent - 1] * 1000
