"""The composition root: packages are connected here and nowhere else."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, Unpack
from urllib.parse import urlsplit

import anyio

from tape.bus.append import Appender
from tape.bus.broker_task import Backend
from tape.bus.feed import Feed
from tape.bus.journal import Journal
from tape.bus.retention import run_retention
from tape.bus.tail import ENTRIES, Tail
from tape.core.background import background
from tape.core.errors import UsageError, quoted
from tape.core.ports import Reader, Store
from tape.settings import Settings
from tape.work.outages import open_when_available

if TYPE_CHECKING:
    from tape.core.reaction import Reaction
    from tape.core.run_state import RunState
    from tape.matcher.dispatcher import WorkerConfig
    from tape.operations.ledgers import EventLog, OperationCalls
    from tape.outbox.forwarder import Destination
    from tape.runs.ledgers import LocalLedgers
    from tape.sdk.durable.agent_job import Function
    from tape.sdk.durable.agent_worker import AgentOptions
    from tape.sdk.nouns.blocking import Node
    from tape.sdk.nouns.node import AsyncNode

MAX_KEPT: Final = 1_000_000

T = TypeVar("T")


def open_store(
    url: str,
    *,
    unsafe_durability: bool = False,
    listen_url: str | None = None,
    keep_per_run: int | None = None,
    must_exist: bool = False,
) -> AbstractAsyncContextManager[Store]:
    """The store at a URL; `keep_per_run` limits the entries that a bounded store keeps of a run.

    A store that does not exist is created; one that `must_exist` raises MissingStore instead.
    """
    if keep_per_run is not None and not 1 <= keep_per_run <= MAX_KEPT:
        raise UsageError(f"a run keeps 1 to {MAX_KEPT:,} events, not {keep_per_run}")
    match _scheme(url):
        case "sqlite" | "memory":
            from tape.store.sqlite.location import Location
            from tape.store.sqlite.store import open_store as open_sqlite

            return open_sqlite(Location.parse(url, unsafe_durability).keeping(keep_per_run), must_exist=must_exist)
        case "postgresql" | "postgres":
            need("asyncpg", "postgres")
            from tape.store.postgres.store import open_store as open_postgres

            return open_postgres(url, listen_url=listen_url, unsafe_durability=unsafe_durability, must_exist=must_exist)
        case "redis" | "rediss":
            need("redis", "redis")
            from tape.store.redis.location import Location as RedisLocation
            from tape.store.redis.store import open_store as open_redis

            return open_redis(RedisLocation.parse(url).keeping(keep_per_run), must_exist=must_exist)
        case "tape":
            raise UsageError("this works on a store and not through a server; give the URL of the server's store")
        case scheme:
            known = "sqlite:///file.db, postgresql://…, redis://… or memory://"
            raise UsageError(f"a store is {known}, not {quoted(scheme or url)}")


def _scheme(url: str) -> str:
    """The URL's scheme; the port of each Postgres host is checked."""
    try:
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(",") if parts.scheme.startswith("postgres") else ():
            _ = urlsplit(f"//{host}").port  # urlsplit checks the port when it is read
    except ValueError as error:
        raise UsageError(f"the URL of the store cannot be read ({error})") from error
    return parts.scheme


def need(driver: str, extra: str) -> None:
    if find_spec(driver) is None:
        raise UsageError(f"this needs the package {driver}; install tape-bus[{extra}]")


@asynccontextmanager
async def open_journal(
    url: str | None = None, *, unsafe_durability: bool = False, must_exist: bool = False
) -> AsyncIterator[Journal]:
    """The journal at a URL, or at TAPE_STORE; acknowledged events are on disk before it closes.

    A journal that does not exist is created; one that `must_exist` raises MissingStore instead.
    """
    settings = Settings.read(os.environ)
    opened = open_store(
        url or settings.store,
        unsafe_durability=unsafe_durability or settings.unsafe_durability,
        listen_url=settings.listen_url,
        must_exist=must_exist,
    )
    cold = lake_behind(url or settings.store, settings.lake_folder)
    async with opened as store, run_journal(store, cold=cold) as journal:
        yield journal


@asynccontextmanager
async def open_backend(
    url: str,
    keep_per_run: int | None = None,
    lake: Path | None = None,
    *,
    must_exist: bool = False,
    unsafe_durability: bool = False,
) -> AsyncIterator[Backend]:
    """A store with its journal, and with the lake behind it, by default TAPE_LAKE.

    The tail never holds more than a run keeps.
    """
    settings = Settings.read(os.environ)
    opened = open_store(
        url,
        unsafe_durability=unsafe_durability or settings.unsafe_durability,
        listen_url=settings.listen_url,
        keep_per_run=keep_per_run,
        must_exist=must_exist,
    )
    cold = lake_behind(url, lake or settings.lake_folder)
    async with opened as store, run_journal(store, min(ENTRIES, keep_per_run or ENTRIES), cold) as journal:
        yield Backend(store, journal, is_ephemeral=urlsplit(url).scheme == "memory")


@asynccontextmanager
async def aconnect(
    url: str | None = None, *, must_exist: bool = False, unsafe_durability: bool = False, lake: Path | None = None
) -> AsyncIterator["AsyncNode"]:
    """The ledgers at a URL: of the server at tape://host:port, or of a store in this process.

    Without a URL it is TAPE_URL; if only TAPE_STORE is set, that; else the server at tape://localhost:7878. A store
    that does not exist is created; one that `must_exist` raises MissingStore instead.
    """
    from tape.sdk.nouns.node import AsyncNode

    settings = Settings.read(os.environ)
    place = url or settings.node
    if _is_far(place):
        from tape.sdk.remote.ledgers import connect as connect_to_server

        async with connect_to_server(place, settings.app) as node:
            yield node
        return
    opened = open_backend(place, lake=lake, must_exist=must_exist, unsafe_durability=unsafe_durability)
    async with opened as backend:
        ledgers = ledgers_of(backend.store, backend.journal, settings.outbox or place)
        await ledgers.check()
        yield AsyncNode(ledgers, settings.app)


@asynccontextmanager
async def open_operations(
    url: str, *, unsafe_durability: bool = False, must_exist: bool = False
) -> AsyncIterator["OperationCalls"]:
    """What runs operations: of a store, with or without ledgers, or of the server at tape://host:port."""
    from tape.operations.handlers import Handlers
    from tape.runs.journal_runs import JournalRuns
    from tape.runs.run_events import RunEvents

    if _is_far(url):
        from tape.sdk.remote.ledgers import connect_ledgers

        async with connect_ledgers(url) as far:
            yield far
        return
    opened = open_store(url, unsafe_durability=unsafe_durability, must_exist=must_exist)
    async with opened as store, run_journal(store) as journal:
        if urlsplit(url).scheme in ("redis", "rediss"):
            yield Handlers(JournalRuns(journal, store.runs, None), RunEvents(journal, store.runs))
        else:
            yield ledgers_of(store, journal)


@asynccontextmanager
async def open_events(
    url: str, *, unsafe_durability: bool = False, must_exist: bool = False
) -> AsyncIterator["EventLog"]:
    """Appends and streams events: of a store's journal, or of the server at tape://host:port."""
    if _is_far(url):
        from tape.sdk.remote.ledgers import connect_ledgers

        async with connect_ledgers(url) as far:
            yield far.events
        return
    from tape.runs.events import Events

    async with open_journal(url, unsafe_durability=unsafe_durability, must_exist=must_exist) as journal:
        yield Events(journal)


@asynccontextmanager
async def open_outbox_operations(url: str, schema: str) -> AsyncIterator["OperationCalls"]:
    """What runs the operations of an outbox: of a database, or of the server at tape://host:port."""
    from tape.operations.handlers import Handlers
    from tape.outbox.operations import SCHEMA, OutboxOperations

    if not _is_far(url):
        yield Handlers(OutboxOperations(url, schema))
        return
    if schema != SCHEMA:
        raise UsageError(f"a server has one outbox, and none in the schema {schema!r}; name its database in --store")
    from tape.sdk.remote.ledgers import connect_ledgers

    async with connect_ledgers(url) as far:
        yield far


def ledgers_of(store: Store, journal: Journal, outbox: str = "") -> "LocalLedgers":
    """The ledgers of a store; they run its other operations too, and those of the outbox at a URL."""
    from tape.matcher.reactions import Reactions
    from tape.matcher.tasks import Tasks
    from tape.outbox.operations import OutboxOperations
    from tape.runs.ledgers import LocalLedgers

    return LocalLedgers(store, journal, Reactions(store, journal), Tasks(store, journal), OutboxOperations(outbox))


def _is_far(url: str) -> bool:
    """Whether the URL names a server."""
    if urlsplit(url).scheme != "tape":
        return False
    need("grpc", "grpc")
    return True


@contextmanager
def connect(url: str | None = None) -> Iterator["Node"]:
    """The same for a program without async."""
    from tape.sdk.nouns.blocking import Node
    from tape.sdk.portal import entered

    with entered(aconnect(url)) as (portal, node):
        yield Node(portal, node)


def run_agent(
    app: str,
    function: "Function",
    url: str | None = None,
    *,
    once: bool = False,
    **options: "Unpack[AgentOptions]",
) -> int:
    """Executes a durable function for each run of an application that needs a worker, until a signal.

    It also compensates obligations, fires timers, and dispatches effects that it has connectors for. With `once` it
    stops when nothing is due. Returns how much was done.
    """
    from tape.sdk.durable.agent_worker import AgentWorker

    worker = AgentWorker(app=app, function=function, **options)
    return anyio.run(_at, url, worker.run_once if once else worker.run_until_signal)


def resume(run_id: str, function: "Function", url: str | None = None, **options: "Unpack[AgentOptions]") -> "RunState":
    """Executes one run now and returns its state afterwards."""
    from tape.sdk.durable.agent_worker import AgentWorker

    worker = AgentWorker(app=None, function=function, **options)
    return anyio.run(_at, url, lambda node: worker.resume(node, run_id))


async def _at(url: str | None, work: "Callable[[AsyncNode], Awaitable[T]]") -> T:
    async with aconnect(url) as node:
        return await work(node)
    raise AssertionError("unreachable")


@asynccontextmanager
async def run_journal(store: Store, tail_entries: int = ENTRIES, cold: Reader | None = None) -> AsyncIterator[Journal]:
    """A journal over a store and the lake behind it, with its background tasks."""
    tail = Tail((await store.journal.bounds()).head, tail_entries, epoch=store.epoch)
    feed = Feed(store, tail)
    appender = Appender(store.journal, feed.on_appended)
    async with background(appender.run, feed.run, partial(run_retention, store)):
        try:
            yield Journal(store, tail, appender, cold)
        finally:
            await appender.drain()


async def register(url: str | None, reactions: "Iterable[Reaction]") -> None:
    """Registers reactions with the store or server at a URL, or at the default of `aconnect`."""
    async with aconnect(url) as node:
        for reaction in reactions:
            await node.reactions.register(reaction)


async def dispatch(url: str | None, config: "WorkerConfig", once: bool = False) -> int:
    """Matches and handles until a signal, or once; returns how many tasks were settled.

    A server at the URL does the matching itself. The default URL is that of `aconnect`, and for bridges the store.
    """
    from tape.bridges.peers import peer_connections
    from tape.matcher.dispatcher import Dispatcher

    settings = Settings.read(os.environ)
    place = url or (settings.store if config.peers else settings.node)
    if _is_far(place):
        from tape.sdk.remote.dispatcher import dispatch as dispatch_far

        return await dispatch_far(place, config, once)
    equipped = config if config.peers else replace(config, peers=tuple(peer_connections(settings.connections).values()))
    make = partial(open_backend, place)
    async with make() if once else open_when_available(make, "work") as backend:
        dispatcher = Dispatcher(backend.store, equipped, backend.journal)
        return await (dispatcher.run_once() if once else dispatcher.run_until_signal())
    raise AssertionError("unreachable")


async def forward(url: str | None, to: "Destination", cursor: Path, pattern: str, once: bool = False) -> int:
    """Relays a journal to a target or function until a signal, or once; returns how many entries."""
    from tape.outbox.forwarder import forward_journal

    make = partial(open_journal, url)
    async with make() if once else open_when_available(make, "relay") as journal:
        return await forward_journal(journal, to, cursor, pattern, once)
    raise AssertionError("unreachable")


def lake_behind(store: str, lake: Path) -> Reader | None:
    """The reader of the lake behind a durable store; other stores have none."""
    from tape.lake.lazy_reader import LazyReader

    return LazyReader(lake) if urlsplit(store).scheme in ("sqlite", "postgresql", "postgres") else None
