"""A page of runs among a million against the same page among a thousand."""

import atexit
import sqlite3
from contextlib import ExitStack
from functools import cache, partial
from statistics import median
from time import perf_counter

import asyncpg

from tape.compose import open_store
from tape.core.run_query import RunOrder, RunQuery
from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run
from tests.bench.servers import postgres
from tests.bench.workload import database
from tests.contract.many_runs import script

AREA = "runs"
FEW, MANY = 1_000, 1_000_000
PAGES = 200
LIMIT = 50
LISTS = {
    "the first page": (RunQuery(), 1),
    "the tenth page": (RunQuery(), 10),
    "a search by prefix": (RunQuery(prefix="run-7"), 1),
    "newest first": (RunQuery(order=RunOrder.NEWEST), 1),
}

_stack = ExitStack()  # what sides share lives as long as the program
atexit.register(_stack.close)


def comparisons() -> list[Comparison]:
    return [
        Comparison(
            area=AREA,
            name=f"{name} of {MANY:,} runs against that of {FEW:,}, {dialect}",
            unit="µs/page",
            ours=partial(cost, dialect, MANY, name),
            peer=partial(cost, dialect, FEW, name),
            goal=Goal("<=", 1.5),
        )
        for dialect in ("sqlite", "postgres")
        for name in LISTS
    ]


def cost(dialect: str, count: int, name: str) -> float:
    query, number = LISTS[name]
    return run(_cost(filled(dialect, count), query, number))


@cache
def filled(dialect: str, count: int) -> str:
    """The URL of a store with so many runs."""
    if dialect == "postgres":
        url = postgres().create_database()  # gone with its server
        run(_prepare(url))
        run(_fill_postgres(url, count))
        return url
    location = _stack.enter_context(database())
    url = f"sqlite:///{location.path}"
    run(_prepare(url))
    connection = sqlite3.connect(str(location.path))
    connection.executescript(script("sqlite", count).removesuffix("ANALYZE;"))
    connection.close()
    return url


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


async def _fill_postgres(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(script("postgres", count))
    await connection.close()


async def _cost(url: str, query: RunQuery, number: int) -> float:
    """How long the page with that number takes, once the pages before have been read."""
    async with open_store(url) as store:
        after = None
        for _ in range(number - 1):
            found = await store.runs.listed(query, LIMIT, after)
            after = query.position(found[-1])
        found = await store.runs.listed(query, LIMIT, after)
        assert found
        times = []
        for _ in range(PAGES):
            started = perf_counter()
            await store.runs.listed(query, LIMIT, after)
            times.append(perf_counter() - started)
        return median(times) * 1e6  # a page that another process delays is nobody's cost
