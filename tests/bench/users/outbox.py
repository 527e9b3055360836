"""From the commit of a transaction that publishes to its handler: plain, and in the handler's own transaction."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

import asyncpg

from tape.outbox import OutboxEvent, migrate, publish
from tests.bench.compare import Comparison
from tests.bench.users.figures import Figures
from tests.bench.users.handlers import one_worker
from tests.bench.users.processes import running, script
from tests.bench.users.queues import (
    PGQUEUER_WORKER,
    PROGRAMS,
    Environment,
    Running,
    System,
    procrastinate_task,
    run_command,
)
from tests.bench.users.size import Size
from tests.bench.users.stores import POSTGRES, Store, empty_store, sqlite_path
from tests.bench.users.versions import named

AREA = "outbox"
CONNECTIONS = 4  # that commit at once on Postgres; SQLite has one writer
TABLES = "CREATE TABLE orders (number bigint NOT NULL); CREATE TABLE invoices (number bigint NOT NULL);"
OUTBOX = "CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number bigint NOT NULL)"

Kind: TypeAlias = Literal["plain", "transactional"]
Commit: TypeAlias = Callable[[Any, int], Awaitable[object]]


def comparisons(size: Size) -> list[Comparison]:
    plain, transactional = _tape("Postgres", "plain"), _tape("Postgres", "transactional")
    pairs = [
        ("plain, Postgres, against pgqueuer", plain, _pgqueuer()),
        ("plain, Postgres, against procrastinate", plain, _procrastinate()),
        ("transactional, Postgres, against SKIP LOCKED by hand", transactional, _by_hand()),
        *((f"{ours.name}, against Postgres", ours, peer) for ours, peer in _on_sqlite(plain, transactional)),
    ]
    systems = {system.name: system for _, ours, peer in pairs for system in (ours, peer)}
    measured = {name: one_worker(system, size) for name, system in systems.items()}
    return [row for name, ours, peer in pairs for row in _rows(measured, name, ours, peer)]


def _on_sqlite(plain: System, transactional: System) -> Iterator[tuple[System, System]]:
    yield _tape("SQLite", "plain"), plain
    yield _tape("SQLite", "transactional"), transactional


def _rows(measured: Mapping[str, Figures], name: str, ours: System, peer: System) -> Iterator[Comparison]:
    row = partial(Comparison, area=AREA, table="users", ours_is=ours.described, peer_is=peer.described)
    mine, theirs = measured[ours.name], measured[peer.name]
    title = f"transactions committed and handled, {name}"
    yield row(name=title, unit="events/s", ours=mine.side("rate"), peer=theirs.side("rate"))
    for cut in ("p50", "p99"):
        yield row(name=f"commit to handled, {name}, {cut}", unit="ms", ours=mine.side(cut), peer=theirs.side(cut))


def _tape(store: Store, kind: Kind) -> System:
    handler = {"plain": "handler(event)", "transactional": "handler(event, connection)"}[kind]
    described = (
        f"`publish(event, connection)` in the transaction, `OutboxListener(URL).run()`, {handler}; docs/outbox.md"
    )
    return System(f"{kind}, {store}", described, 500, partial(_run_tape, store, kind))


@asynccontextmanager
async def _run_tape(store: Store, kind: Kind, workers: int, environment: Environment) -> AsyncIterator[Running]:
    with empty_store(store) as url:
        await migrate(url)
        program = [sys.executable, "-m", f"{PROGRAMS}.outbox_listener", url, kind]
        if store == "SQLite":
            connection = sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=30)
            connection.executescript(TABLES)
            with running(program, environment) as listener:
                yield Running(partial(_on_one, _commit_sqlite, connection), [listener], url)
            connection.close()
            return
        async with _connections(url, TABLES) as connections:
            with running(program, environment) as listener:
                yield Running(partial(_on_all, _commit_postgres, connections), [listener], url)


async def _commit_postgres(connection: asyncpg.Connection, number: int) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO orders VALUES ($1)", number)
        await publish(_event(number), connection)


async def _commit_sqlite(connection: sqlite3.Connection, number: int) -> None:
    """As docs/outbox.md says, a transaction that publishes begins with BEGIN IMMEDIATE."""
    await asyncio.sleep(0)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (?)", (number,))
    publish(_event(number), connection)
    connection.execute("COMMIT")


def _event(number: int) -> OutboxEvent:
    return OutboxEvent(event_type="orders.placed", source="orders", payload={"number": number})


def _pgqueuer() -> System:
    described = (
        f"{named('pgqueuer')}: `Queries.enqueue` on the connection of the transaction, `pgq.run` with the "
        f"settings of the handlers' rows; {POSTGRES}"
    )
    return System("pgqueuer", described, 1_000, _run_pgqueuer)


@asynccontextmanager
async def _run_pgqueuer(workers: int, environment: Environment) -> AsyncIterator[Running]:
    library = import_module("pgqueuer")
    driver = import_module("pgqueuer.db").AsyncpgDriver

    async def commit(connection: asyncpg.Connection, number: int) -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES ($1)", number)
            await library.Queries(driver(connection)).enqueue("handle", str(number).encode())

    with empty_store("Postgres") as url:
        environment = {**environment, "PGDSN": url}
        for verb in ("install", "autovac"):
            run_command([script("pgq"), verb], environment)
        async with _connections(url, TABLES) as connections:
            with running(PGQUEUER_WORKER, environment) as worker:
                yield Running(partial(_on_all, commit, connections), [worker], url)


def _procrastinate() -> System:
    described = (
        f"{named('procrastinate')}: `task.configure(connection=…).defer_async` in the transaction (its "
        f"page howto/production/external_connection), `procrastinate worker --concurrency=30`; {POSTGRES}"
    )
    return System("procrastinate", described, 300, _run_procrastinate)


@asynccontextmanager
async def _run_procrastinate(workers: int, environment: Environment) -> AsyncIterator[Running]:
    connect = import_module("psycopg").AsyncConnection.connect
    with empty_store("Postgres") as url:
        environment = {**environment, "DATABASE_URL": url}
        name = f"--app={PROGRAMS}.procrastinate_app.app"
        run_command([script("procrastinate"), name, "schema", "--apply"], environment)
        async with procrastinate_task(url) as task, _connections(url, TABLES), AsyncExitStack() as stack:

            async def commit(connection: Any, number: int) -> None:
                await connection.execute("INSERT INTO orders VALUES (%s)", [number])
                await task.configure(connection=connection).defer_async(number=number)
                await connection.commit()

            connections = [await stack.enter_async_context(await connect(url)) for _ in range(CONNECTIONS)]
            with running([script("procrastinate"), name, "worker", "--concurrency=30"], environment) as worker:
                yield Running(partial(_on_all, commit, connections), [worker], url)


def _by_hand() -> System:
    described = (
        "a table, NOTIFY and a worker by hand: four connections, each deletes a row with SKIP LOCKED, writes and "
        f"commits in one transaction; no retries, no dead letters, one handler; {POSTGRES}"
    )
    return System("by hand", described, 1_000, _run_by_hand)


@asynccontextmanager
async def _run_by_hand(workers: int, environment: Environment) -> AsyncIterator[Running]:
    async def commit(connection: asyncpg.Connection, number: int) -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES ($1)", number)
            await connection.execute("INSERT INTO outbox (number) VALUES ($1)", number)
            await connection.execute("NOTIFY outbox")

    with empty_store("Postgres") as url:
        async with _connections(url, f"{TABLES} {OUTBOX}") as connections:
            with running([sys.executable, "-m", f"{PROGRAMS}.outbox_by_hand", url], environment) as worker:
                yield Running(partial(_on_all, commit, connections), [worker], url)


@asynccontextmanager
async def _connections(url: str, tables: str) -> AsyncIterator[list[asyncpg.Connection]]:
    opened = [await asyncpg.connect(url) for _ in range(CONNECTIONS)]
    await opened[0].execute(tables)
    yield opened
    for connection in opened:
        await connection.close()


async def _on_one(commit: Commit, connection: Any, numbers: Sequence[int]) -> None:
    for number in numbers:
        await commit(connection, number)


async def _on_all(commit: Commit, connections: Sequence[Any], numbers: Sequence[int]) -> None:
    """A transaction for each number, on as many connections as there are."""
    async with asyncio.TaskGroup() as tasks:
        for first, connection in enumerate(connections):
            tasks.create_task(_on_one(commit, connection, numbers[first :: len(connections)]))
