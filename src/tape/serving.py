"""Composes a server: one journal, served over HTTP and gRPC."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tape.bus.journal import Journal
from tape.bus.tail import ENTRIES
from tape.compose import lake_behind, ledgers_of, need, open_store, run_journal
from tape.core.background import background
from tape.core.ports import Store
from tape.operations.handlers import Handlers
from tape.runs.forks import open_forks
from tape.runs.journal_runs import JournalRuns
from tape.runs.producers import Producers
from tape.runs.run_events import RunEvents
from tape.server.http.address import Address
from tape.settings import Settings
from tape.telemetry import Meters
from tape.work.outages import open_when_available

if TYPE_CHECKING:
    from tape.core.lake import LakeQueries
    from tape.core.search import Searches
    from tape.runs.cold_runs import ColdRuns
    from tape.runs.ledgers import LocalLedgers
    from tape.server.grpc.server import GrpcServer
    from tape.server.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a server serves, its addresses and its limits."""

    store: str
    http: Address
    data: Path
    origins: tuple[str, ...] = ()
    event_ring_size: int = 8_000
    reap_after: timedelta = timedelta(minutes=30)
    max_subscribers: int = 64
    unsafe_durability: bool = False
    listen_url: str | None = None
    lake: Path | None = None
    producers: Producers = field(default_factory=Producers)
    grpc: Address | None = None
    needs_grpc: bool = False

    @property
    def is_ephemeral(self) -> bool:
        return urlsplit(self.store).scheme == "memory"

    @property
    def has_reactions(self) -> bool:
        return urlsplit(self.store).scheme not in ("redis", "rediss")

    @property
    def is_bounded(self) -> bool:
        return self.is_ephemeral or urlsplit(self.store).scheme in ("redis", "rediss")


async def serve(service: Service, on_ready: Callable[[Address, Address | None], None]) -> None:
    """Serves a journal over HTTP and gRPC until a signal; calls `on_ready` when both accept connections."""
    need("uvicorn", "server")
    from tape.server.node import Node
    from tape.server.service import serve as serve_node
    from tape.server.sse.subscribers import Subscribers

    subscribers, meters = Subscribers(service.max_subscribers), Meters()
    async with (
        open_when_available(partial(_open_journal, service), "serve") as (store, journal),
        _matching(store, journal, service.has_reactions),
        nullcontext(ledgers_of(store, journal, Settings.read(os.environ).outbox or service.store)) as all_ledgers,
        nullcontext(all_ledgers if service.has_reactions else None) as ledgers,
        open_forks(journal, service.producers, meters.published.add, ledgers=ledgers) as forks,
        _searching(service) as searches,
    ):
        cold_runs = _cold_runs(service.data) if service.is_bounded else None
        runs = JournalRuns(journal, store.runs, ledgers, forks, cold_runs)
        node = Node(
            journal=journal,
            runs=store.runs,
            forks=forks,
            operations=Handlers(all_ledgers, runs, RunEvents(journal, store.runs, cold_runs)),
            subscribers=subscribers,
            meters=meters,
            cold=cold_runs,
            ledgers=ledgers,
            lake=_lake_jobs(service, store),
            searches=searches,
            is_bounded=service.is_bounded,
            is_ephemeral=service.is_ephemeral,
            reap_after=service.reap_after,
        )
        grpc_server = _grpc_server(service, store, node, all_ledgers)
        ready = partial(_report_ready, on_ready, grpc_server)
        await serve_node(node, service.http, service.origins, ready, grpc_server)


@asynccontextmanager
async def _open_journal(service: Service) -> AsyncIterator[tuple[Store, Journal]]:
    """A store and its journal, which reads the store before it is open."""
    opened = open_store(
        service.store,
        unsafe_durability=service.unsafe_durability,
        listen_url=service.listen_url,
        keep_per_run=service.event_ring_size,
    )
    tail_entries = min(ENTRIES, service.event_ring_size) if service.is_bounded else ENTRIES
    cold = lake_behind(service.store, service.lake or service.data / "lake")
    async with opened as store, run_journal(store, tail_entries, cold) as journal:
        yield store, journal


def _grpc_server(service: Service, store: Store, node: "Node", ledgers: "LocalLedgers") -> "GrpcServer | None":
    """The gRPC server; without its packages there is none, unless it was asked for."""
    if service.grpc is None or (find_spec("grpc") is None and not service.needs_grpc):
        return None
    for package in ("grpc", "grpc_health", "grpc_reflection"):
        need(package, "grpc")
    from tape.server.grpc.rpc_context import RpcContext
    from tape.server.grpc.server import GrpcServer

    rpc = RpcContext(
        store=store,
        journal=node.journal,
        ledgers=ledgers,
        operations=node.operations,
        subscribers=node.subscribers,
        meters=node.meters,
        has_ledgers=service.has_reactions,
    )
    return GrpcServer(rpc, service.grpc, is_optional=not service.needs_grpc)


def _report_ready(
    on_ready: Callable[[Address, Address | None], None], grpc_server: "GrpcServer | None", http: Address
) -> None:
    on_ready(http, None if grpc_server is None else grpc_server.address)


@asynccontextmanager
async def _matching(store: Store, journal: Journal, is_able: bool) -> AsyncIterator[None]:
    """Runs the matcher, if the store has reactions."""
    if not is_able:
        yield
        return
    from tape.matcher.dispatcher import Dispatcher, WorkerConfig

    async with background(Dispatcher(store, WorkerConfig(handlers={}), journal).match):
        yield


def _lake_jobs(service: Service, store: Store) -> "LakeQueries | None":
    """Queries of the lake, if the store can have one."""
    from tape.lake.queries import Queries

    return None if service.is_bounded else Queries(store.journal, service.lake or service.data / "lake")


@asynccontextmanager
async def _searching(service: Service) -> "AsyncIterator[Searches | None]":
    """Searches of the history, if the store keeps it."""
    if service.is_bounded:
        yield None
        return
    from tape.lake.search.processes import SearchConfig, open_searches

    lake, master = service.lake or service.data / "lake", Settings.read(os.environ).spark_master
    config = SearchConfig(store=service.store, lake=lake, folder=service.data / "spark", master=master)
    async with open_searches(config) as searches:
        yield searches


def _cold_runs(data: Path) -> "ColdRuns | None":
    """Where a bounded store archives its runs, if DuckDB is installed."""
    if find_spec("duckdb") is None:
        return None
    from tape.lake.cold.runs import ColdRuns as ColdFiles
    from tape.runs.cold_runs import ColdRuns

    return ColdRuns(ColdFiles(data))
