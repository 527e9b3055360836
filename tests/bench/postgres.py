"""The journal on Postgres against bare asyncpg: the same rows, schema and durability, but nobody numbers or judges."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter

import asyncpg

from tape.bus.append import Appender
from tape.compose import run_journal
from tape.core.background import background
from tape.core.event import Columns
from tape.core.sequence import AppendRequest, CellChange, CellId
from tape.store.postgres.store import open_store
from tests.bench import copying
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.servers import journal_url
from tests.bench.workload import entries, event, events, set_aside

AREA = "postgres"
ROWS = 20_000
SINGLES = 4_000
LEDGER = 6_000
UNIT = "events/s"

INSERT = f"INSERT INTO tape_journal VALUES ({', '.join(f'${n + 1}' for n in range(len(Columns._fields)))})"
ROW_NOTIFY = """
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_notify('tape', NEW.global_seq::text); RETURN NULL; END $$;
CREATE TRIGGER tell AFTER INSERT ON tape_journal FOR EACH ROW EXECUTE FUNCTION tell();
"""


def comparisons() -> list[Comparison]:
    one_copy, copies = partial(copy, ROWS), partial(copy, 100)
    sixteen = partial(publish, 16, SINGLES)
    quiet, telling = partial(connections, 16, "SELECT"), partial(connections, 16, ROW_NOTIFY)
    return [
        _row("append of 1,000 against one indexed COPY", partial(store, 1_000), one_copy, Goal(">=", 0.5)),
        _row("append of 1,000, events made, against one indexed COPY", partial(journal, 1_000), one_copy),
        _row("append of 100 against COPY of 100", partial(store, 100), copies, Goal(">=", 0.45)),
        _row("append of 100, events made, against COPY of 100", partial(journal, 100), copies),
        _row("16 publishers against 16 connections with a row's NOTIFY", sixteen, telling, Goal(">=", 3)),
        _row("16 publishers against 16 connections without NOTIFY", sixteen, quiet, Goal(">=", 0.95)),
        _row("64 ledger requests at a time against as many appends", ledger, appends, Goal(">=", 0.5)),
    ]


def _row(name: str, ours: Side, peer: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=AREA, name=name, unit=UNIT, ours=ours, peer=peer, goal=goal)


def copy(batch: int) -> float:
    """Encoded rows, a COPY and so a durable transaction a batch."""
    rows = entries(events(ROWS))
    return run(_copy([copying.encoded(rows[at : at + batch]) for at in range(0, ROWS, batch)]))


async def _copy(batches: Sequence[bytes]) -> float:
    with journal_url() as url:
        connection = await asyncpg.connect(url)
        started = perf_counter()
        for batch in batches:
            await copying.copy(connection, batch)
        elapsed = perf_counter() - started
        await connection.close()
    return ROWS / elapsed


def store(batch: int) -> float:
    """Prepared requests through the store's own append."""
    made = events(ROWS)
    return run(_store([AppendRequest(events=tuple(made[at : at + batch]), opens=True) for at in range(0, ROWS, batch)]))


async def _store(requests: Sequence[AppendRequest]) -> float:
    with journal_url() as url, set_aside():
        async with open_store(url) as opened:
            started = perf_counter()
            for request in requests:
                await opened.journal.append([request])
            return ROWS / (perf_counter() - started)


def journal(batch: int) -> float:
    """What a user writes: events made and appended, a batch after the other."""
    return run(_journal(batch))


async def _journal(batch: int) -> float:
    with journal_url() as url:
        async with open_store(url) as opened, run_journal(opened) as opened_journal:
            started = perf_counter()
            for first in range(0, ROWS, batch):
                await opened_journal.append(map(event, range(first, first + batch)), open=True)
            return ROWS / (perf_counter() - started)


def publish(publishers: int, count: int) -> float:
    """Prepared events of publishers who each wait for their own acknowledgement."""
    requests = [AppendRequest(events=(each,), opens=True) for each in events(count)]
    return run(_publish(requests, publishers))


def ledger() -> float:
    """An event and a cell of its own each."""
    requests = [AppendRequest(events=(event,), cells=(_cell(n),), opens=True) for n, event in enumerate(events(LEDGER))]
    return run(_publish(requests, 64))


def _cell(number: int) -> CellChange:
    return CellChange(id=CellId("ledger", str(number)), seen=0, status="open", state_json="{}")


def appends() -> float:
    return publish(64, LEDGER)


async def _publish(requests: Sequence[AppendRequest], publishers: int) -> float:
    with journal_url() as url, set_aside():
        async with open_store(url) as opened:
            appender = Appender(opened.journal, lambda entries: None)
            async with background(appender.run):
                started = perf_counter()
                async with asyncio.TaskGroup() as tasks:
                    for number in range(publishers):
                        tasks.create_task(_publisher(appender, requests[number::publishers]))
                return len(requests) / (perf_counter() - started)


async def _publisher(appender: Appender, requests: Iterable[AppendRequest]) -> None:
    for request in requests:
        await appender.append(request)


def connections(count: int, setup: str) -> float:
    """Prepared rows, numbered beforehand, each a durable transaction on one of several connections."""
    rows = [tuple(entry) for entry in entries(events(SINGLES))]
    return run(_connections([rows[number::count] for number in range(count)], setup))


async def _connections(shares: Sequence[Sequence[tuple[object, ...]]], setup: str) -> float:
    with journal_url() as url, set_aside():
        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(asyncpg.create_pool(url, min_size=1, max_size=1)) for _ in shares]
            await opened[0].execute(setup)
            started = perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for pool, share in zip(opened, shares, strict=True):
                    tasks.create_task(_inserter(pool, share))
            return SINGLES / (perf_counter() - started)


async def _inserter(pool: asyncpg.Pool, rows: Sequence[tuple[object, ...]]) -> None:
    async with pool.acquire() as connection:
        insert = await connection.prepare(INSERT)
        for row in rows:
            await insert.fetch(*row)
