"""A dispatcher: matches the journal and works off the tasks, in one process or in many."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NoReturn

import anyio

from tape.bridges.peer import PeerConnection
from tape.bridges.peers import peer_connections
from tape.bridges.target import Target
from tape.bus.journal import Journal
from tape.core.background import background
from tape.core.claim import WORK_LEASE
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.matcher.agents import AgentHandlers
from tape.matcher.matcher import Matcher
from tape.matcher.publishing import PublishHandlers, Route, routed_to, target_of
from tape.runs.ledgers import Ledgers
from tape.settings import Settings
from tape.telemetry import log
from tape.work.collected import Collection
from tape.work.handler import Handler
from tape.work.outages import retry_outages
from tape.work.shutdown import until_signal
from tape.work.worker import Worker

AGENTS: Final = 1_000  # runs that one process waits for


def new_owner() -> str:
    """A name that no other worker has."""
    host = "".join(char if char.isalnum() else "-" for char in socket.gethostname())[:64].lstrip("-")
    return f"{host or 'worker'}-{os.getpid()}-{os.urandom(4).hex()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Who works: what is registered first, which functions handle what, to whom is published, and under which name."""

    handlers: Mapping[str, Handler]
    reactions: tuple[Reaction, ...] = ()
    peers: tuple[PeerConnection, ...] = ()
    route: Route = target_of
    owner: str = field(default_factory=new_owner)
    slots: int = 16
    lease: timedelta = WORK_LEASE

    def __post_init__(self) -> None:
        for each in self.handlers.values():
            each.check()


def config_of(
    collection: Collection, *, is_registering: bool, owner: str | None, slots: int, lease: timedelta
) -> WorkerConfig:
    """Those whom decorators have collected."""
    return WorkerConfig(
        reactions=tuple(each.reaction for each in collection) if is_registering else (),
        handlers=collection.handlers,
        owner=owner or new_owner(),
        slots=slots,
        lease=lease,
    )


def pubsub_config(target: str, reaction_id: str, *, owner: str | None, slots: int, lease: timedelta) -> WorkerConfig:
    """Whoever publishes to one topic of Pub/Sub, and handles nothing else."""
    given = Settings.read(os.environ).connections.get("pubsub", {})
    peer = peer_connections({"pubsub": {"slots": slots, **given}})["pubsub"]
    route = routed_to(Target.parse(target), reaction_id)
    return WorkerConfig(handlers={}, peers=(peer,), route=route, owner=owner or new_owner(), slots=slots, lease=lease)


class Dispatcher:
    """A matcher and workers over one store; the workers are woken by what the matcher writes.

    With a journal it starts agents too.
    """

    def __init__(self, store: Store, config: WorkerConfig, journal: Journal | None = None) -> None:
        self._store = store
        self._config = config
        self.worker = Worker(store.tasks, config.handlers, owner=config.owner, slots=config.slots, lease=config.lease)
        self.matcher = Matcher(store, None if journal is None else journal.pages(), self._wake, slots=self.worker.slots)
        self._journal = journal
        self._starter = self._agents(is_waiting=True)
        self._bridges = [self._bridge(peer) for peer in config.peers]

    async def register(self) -> None:
        for reaction in self._config.reactions:
            await self._store.reactions.register(reaction)

    async def run(self) -> int:
        """Works until it is stopped; how many tasks it has settled."""
        await retry_outages(lambda _: self.register(), "work")
        async with background(self.matcher.run, self._start_agents):
            log.info("dispatcher.started", owner=self._config.owner, handlers=len(self._config.handlers))
            await self._work()
        log.info("dispatcher.stopped", owner=self._config.owner, handled=self.handled)
        return self.handled

    @property
    def handled(self) -> int:
        """How many tasks were settled by now, agents' aside."""
        return sum(worker.handled for worker in (self.worker, *self._bridges))

    def stop(self) -> None:
        """Claims nothing more; `run` returns when everything that was begun is settled."""
        for worker in (self.worker, *self._bridges):
            worker.stop()
        for peer in self._config.peers:
            peer.stop()

    async def _work(self) -> None:
        """Each bridge has a loop of its own, so that a peer that takes nothing holds up nobody else."""
        try:
            async with anyio.create_task_group() as tasks:
                for worker in (self.worker, *self._bridges):
                    tasks.start_soon(worker.run)
        finally:
            await self._hang_up()

    async def _hang_up(self) -> None:
        for peer in self._config.peers:
            await peer.close()

    async def match(self) -> NoReturn:
        """Matches and starts agents, and leaves the other tasks to others."""
        async with background(self.matcher.run):
            await self._start_agents()
        raise AssertionError("agents are started for ever")

    async def run_until_signal(self) -> int:
        """The same until a signal says to leave; a second one does not wait for what was begun."""
        return await until_signal(self.run, self.stop)

    async def run_once(self) -> int:
        """Matches what there is and works off what is due, until neither makes more."""
        await self.register()
        self.matcher = Matcher(self._store)  # a tail may not have heard yet of what there is
        starter = self._agents(is_waiting=False)
        for peer in self._config.peers:
            peer.stop()  # a peer that is away is not waited for
        try:
            while await self.matcher.step() or await self._have_worked(starter):
                pass
        finally:
            await self._hang_up()
        return self.handled

    async def _have_worked(self, starter: Worker) -> bool:
        return any([await has_worked(worker) for worker in (self.worker, starter, *self._bridges)])

    def _agents(self, *, is_waiting: bool) -> Worker:
        agents: Mapping[str, Handler] = {}
        if self._journal is not None:
            runs = Ledgers(self._store, self._journal).runs
            agents = AgentHandlers(lambda: self.matcher.states, runs, self._journal, is_waiting=is_waiting)
        return Worker(self._store.tasks, agents, owner=self._config.owner, slots=AGENTS, lease=self._config.lease)

    def _bridge(self, peer: PeerConnection) -> Worker:
        sends = PublishHandlers(lambda: self.matcher.states, peer, self._store.journal, self._config.route)
        slots = peer.config.slots
        return Worker(self._store.tasks, sends, owner=self._config.owner, slots=slots, lease=self._config.lease)

    def _wake(self) -> None:
        for worker in (self.worker, self._starter, *self._bridges):
            worker.wake()

    async def _start_agents(self) -> NoReturn:
        while True:
            await self._starter.run()


async def has_worked(worker: Worker) -> bool:
    before = worker.handled
    return await worker.run_once() > before
