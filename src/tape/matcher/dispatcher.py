"""The dispatcher: a matcher and workers over one store, in one process or in many."""

import os
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
from tape.runs.ledgers import LocalLedgers
from tape.settings import Settings
from tape.telemetry import log
from tape.work.collected import Collection
from tape.work.handler import Handler
from tape.work.outages import retry_outages
from tape.work.shutdown import until_signal
from tape.work.worker import Worker, new_owner

AGENT_SLOTS: Final = 1_000  # runs that one process waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What a dispatcher registers at its start, its handlers, its peers, and the name and size of its worker."""

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
    """The configuration for the reactions that decorators have collected."""
    return WorkerConfig(
        reactions=tuple(each.reaction for each in collection) if is_registering else (),
        handlers=collection.handlers,
        owner=owner or new_owner(),
        slots=slots,
        lease=lease,
    )


def pubsub_config(target: str, reaction_id: str, *, owner: str | None, slots: int, lease: timedelta) -> WorkerConfig:
    """The configuration of a bridge that publishes to one Pub/Sub topic, and handles nothing else."""
    given = Settings.read(os.environ).connections.get("pubsub", {})
    peer = peer_connections({"pubsub": {"slots": slots, **given}})["pubsub"]
    route = routed_to(Target.parse(target), reaction_id)
    return WorkerConfig(handlers={}, peers=(peer,), route=route, owner=owner or new_owner(), slots=slots, lease=lease)


class Dispatcher:
    """Matches the journal and handles tasks. The matcher wakes the workers when it inserts tasks.

    With a journal it starts agents too.
    """

    def __init__(self, store: Store, config: WorkerConfig, journal: Journal | None = None) -> None:
        self._store = store
        self._config = config
        self.worker = Worker(store.tasks, config.handlers, owner=config.owner, slots=config.slots, lease=config.lease)
        self.matcher = Matcher(store, None if journal is None else journal.pages(), self._wake, slots=self.worker.slots)
        self._journal = journal
        self._agent_worker = self._new_agent_worker(is_waiting=True)
        self._bridges = [self._new_bridge(peer) for peer in config.peers]

    async def register(self) -> None:
        for reaction in self._config.reactions:
            await self._store.reactions.register(reaction)

    async def run(self) -> int:
        """Works until it is stopped; returns how many tasks it has settled."""
        await retry_outages(lambda _: self.register(), "work")
        async with background(self.matcher.run, self._run_agents):
            log.info("dispatcher.started", owner=self._config.owner, handlers=len(self._config.handlers))
            await self._work()
        log.info("dispatcher.stopped", owner=self._config.owner, handled=self.handled)
        return self.handled

    @property
    def handled(self) -> int:
        """How many tasks were settled by now, without those that start agents."""
        return sum(worker.handled for worker in (self.worker, *self._bridges))

    def stop(self) -> None:
        """Claims nothing more; `run` returns when everything that was claimed is settled."""
        for worker in (self.worker, *self._bridges):
            worker.stop()
        for peer in self._config.peers:
            peer.stop()

    async def _work(self) -> None:
        """Runs the workers. Each bridge has its own, so that a peer that does not answer blocks no other work."""
        try:
            async with anyio.create_task_group() as tasks:
                for worker in (self.worker, *self._bridges):
                    tasks.start_soon(worker.run)
        finally:
            await self._close_peers()

    async def _close_peers(self) -> None:
        for peer in self._config.peers:
            await peer.close()

    async def match(self) -> NoReturn:
        """Matches and starts agents, and leaves other tasks to other processes."""
        async with background(self.matcher.run):
            await self._run_agents()
        raise AssertionError("agents are started until the task is cancelled")

    async def run_until_signal(self) -> int:
        """Runs until SIGTERM or SIGINT; a second signal ends the process at once."""
        return await until_signal(self.run, self.stop)

    async def run_once(self) -> int:
        """Matches all entries and handles what is due, until neither finds more; returns how many it settled."""
        await self.register()
        self.matcher = Matcher(self._store)  # a tail may lag behind the journal
        agent_worker = self._new_agent_worker(is_waiting=False)
        for peer in self._config.peers:
            peer.stop()  # so that no send waits for a peer that is unavailable
        try:
            while await self.matcher.step() or await self._run_workers_once(agent_worker):
                pass
        finally:
            await self._close_peers()
        return self.handled

    async def _run_workers_once(self, agent_worker: Worker) -> bool:
        return any([await _has_worked(worker) for worker in (self.worker, agent_worker, *self._bridges)])

    def _new_agent_worker(self, *, is_waiting: bool) -> Worker:
        agents: Mapping[str, Handler] = {}
        if self._journal is not None:
            ledgers = LocalLedgers(self._store, self._journal)
            agents = AgentHandlers(lambda: self.matcher.states, ledgers, self._journal, is_waiting=is_waiting)
        return Worker(self._store.tasks, agents, owner=self._config.owner, slots=AGENT_SLOTS, lease=self._config.lease)

    def _new_bridge(self, peer: PeerConnection) -> Worker:
        sends = PublishHandlers(lambda: self.matcher.states, peer, self._store.journal, self._config.route)
        slots = peer.config.slots
        return Worker(self._store.tasks, sends, owner=self._config.owner, slots=slots, lease=self._config.lease)

    def _wake(self) -> None:
        for worker in (self.worker, self._agent_worker, *self._bridges):
            worker.wake()

    async def _run_agents(self) -> NoReturn:
        while True:
            await self._agent_worker.run()


async def _has_worked(worker: Worker) -> bool:
    before = worker.handled
    return await worker.run_once() > before
