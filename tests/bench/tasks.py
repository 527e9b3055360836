"""Parts of handling tasks: matcher and worker in the publisher's process, against the least that a queue can do."""

import asyncio
from functools import partial
from time import perf_counter

import asyncpg

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.matcher.matcher import Matcher
from tape.store.postgres.store import open_store
from tape.work.handler import handler
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.servers import journal_url
from tests.bench.tasks_counting import BATCH, FIRST, TASKS, TEXT, Count, Waits, percentile
from tests.bench.tasks_peers import pick_up_pgqueuer

AREA = "tasks"
SLOTS = 2_000
MATCHED = 20_000
TICKS = 3  # turns of the loop until what was sent is on its way
PAYLOAD: JsonValue = {"number": 1, "status": "confirmed"}

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
        _row("end to end against SKIP LOCKED by hand", ours, by_hand, Goal(">=", 0.6)),
        _pick_up("idle pick-up in the publisher's process p50 against pgqueuer", 50, Goal("<=", 0.85)),
        _pick_up("idle pick-up in the publisher's process p99 against pgqueuer", 99, Goal("<=", 0.7)),
        _by_hand_pick_up("idle pick-up p50 against two commits by hand", 50),
        _by_hand_pick_up("idle pick-up p99 against two commits by hand", 99),
        _matching("matcher with 1,000 reactions against 10", 1_000),
        _matching("matcher with 10,000 reactions against 10", 10_000),
    ]


def _row(name: str, one: Side, other: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=AREA, name=name, unit="tasks/s", ours=one, peer=other, goal=goal)


def _pick_up(name: str, percent: int, goal: Goal) -> Comparison:
    one, other = partial(pick_up, percent), partial(pick_up_pgqueuer, percent)
    return Comparison(area=AREA, name=name, unit="ms", ours=one, peer=other, goal=goal)


def _by_hand_pick_up(name: str, percent: int) -> Comparison:
    """What is left when nothing is done but to write a row, to take it, and to call a function."""
    one, other = partial(pick_up, percent), partial(pick_up_by_hand, percent)
    return Comparison(area=AREA, name=name, unit="ms", ours=one, peer=other)


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


def ours() -> float:
    return TASKS / run(_ours())


def by_hand() -> float:
    return TASKS / run(_by_hand())


def pick_up(percent: int) -> float:
    return percentile(run(_pick_ups()), percent)


def pick_up_by_hand(percent: int) -> float:
    return percentile(run(_pick_ups_by_hand()), percent)


async def _ours() -> float:
    with journal_url() as url:
        async with open_store(url) as store, run_journal(store) as journal:
            await store.reactions.register(_reaction())
            await _put_in(journal, FIRST)
            await _work_off(store, journal, FIRST)
            began = perf_counter()
            await _put_in(journal, TASKS)
            await _work_off(store, journal, TASKS)
            return perf_counter() - began
    raise AssertionError("unreachable")


async def _put_in(journal: Journal, count: int) -> None:
    """A batch is made while the one before is written."""
    sent = None
    for first in range(0, count, BATCH):
        events = [_event() for _ in range(min(BATCH, count - first))]
        if sent is not None:
            await sent
        sent = journal.send(events, open=True)
        for _ in range(TICKS):
            await asyncio.sleep(0)
    if sent is not None:
        await sent


async def _work_off(store: Store, journal: Journal, count: int) -> None:
    counted = Count(count)
    dispatcher = Dispatcher(store, WorkerConfig(handlers={"rule": handler(counted.one)}, slots=SLOTS), journal)
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(dispatcher.run())
        await counted.is_done.wait()
        dispatcher.stop()
        await working


async def _by_hand() -> float:
    with journal_url() as url:
        connection = await asyncpg.connect(url)
        await connection.execute(TABLE)
        await _by_hand_put_in(connection, FIRST)
        await _by_hand_work_off(connection)
        began = perf_counter()
        await _by_hand_put_in(connection, TASKS)
        await _by_hand_work_off(connection)
        took = perf_counter() - began
        await connection.close()
    return took


async def _by_hand_put_in(connection: asyncpg.Connection, count: int) -> None:
    for first in range(0, count, BATCH):
        rows = [(TEXT,)] * min(BATCH, count - first)
        await connection.executemany("INSERT INTO work (payload) VALUES ($1)", rows)


async def _by_hand_work_off(connection: asyncpg.Connection) -> None:
    while taken := await connection.fetch(TAKE, BATCH):
        await connection.execute(FINISH, [row["id"] for row in taken])


async def _pick_ups() -> list[float]:
    waits = Waits()
    with journal_url() as url:
        async with open_store(url) as store, run_journal(store) as journal:
            await store.reactions.register(_reaction())
            dispatcher = Dispatcher(store, WorkerConfig(handlers={"rule": handler(waits.end)}), journal)
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(dispatcher.run())
                await waits.all(partial(_append_one, journal))
                dispatcher.worker.stop()
                await working
    return waits.found


async def _pick_ups_by_hand() -> list[float]:
    waits = Waits()
    with journal_url() as url:
        connection = await asyncpg.connect(url)
        await connection.execute(TABLE)

        async def say() -> None:
            await connection.execute("INSERT INTO work (payload) VALUES ($1)", TEXT)
            taken = await connection.fetch(TAKE, 1)
            await waits.end()
            await connection.execute(FINISH, [row["id"] for row in taken])

        await waits.all(say)
        await connection.close()
    return waits.found


async def _append_one(journal: Journal) -> None:
    await journal.append(_event(), open=True)


def _reaction() -> Reaction:
    return Reaction(reaction_id="rule", subject_pattern="/orders/**", max_concurrency=10_000)


def _event() -> Event:
    return Event(run_id="run-1", payload=PAYLOAD, subject="/orders/new")
