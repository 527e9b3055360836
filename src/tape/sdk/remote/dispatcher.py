"""A dispatcher far from the store: the server matches, and tasks are worked off here."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from tape.core.errors import UsageError
from tape.core.reaction import Reaction
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.tasks import Tasks
from tape.work.attempt import TaskHandler
from tape.work.outages import open_when_available, retry_outages
from tape.work.shutdown import until_signal
from tape.work.worker import Worker


class WorkerConfig(Protocol):
    """Who works: what is registered first, which functions handle what, and under which name."""

    @property
    def reactions(self) -> tuple[Reaction, ...]: ...
    @property
    def handlers(self) -> Mapping[str, TaskHandler]: ...
    @property
    def peers(self) -> Sequence[object]: ...
    @property
    def owner(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def lease(self) -> timedelta: ...


async def dispatch(url: str, config: WorkerConfig, once: bool) -> int:
    """Works at a server until a signal says to leave, or once; how many tasks were settled."""
    if config.peers:
        raise UsageError("a bridge works beside its store; give the store's URL, not a server's")
    make = partial(Channel, url)
    async with make() if once else open_when_available(make, "work") as channel:
        dispatcher = Dispatcher(channel, config)
        return await (dispatcher.run_once() if once else dispatcher.run_until_signal())
    raise AssertionError("unreachable")


class Dispatcher:
    """Workers over one server."""

    def __init__(self, channel: Channel, config: WorkerConfig) -> None:
        self._tasks = Tasks(channel)
        self._reactions = config.reactions
        self._worker = Worker(self._tasks, config.handlers, owner=config.owner, slots=config.slots, lease=config.lease)

    async def register(self) -> None:
        for reaction in self._reactions:
            await self._tasks.register(reaction)

    async def run_once(self) -> int:
        """Works off what is due; how many tasks were settled."""
        await self.register()
        return await self._worker.run_once()

    async def run_until_signal(self) -> int:
        """Works until a signal says to leave; a second one does not wait for what was begun."""
        await retry_outages(lambda _: self.register(), "work")
        await until_signal(self._worker.run, self._worker.stop)
        return self._worker.handled
