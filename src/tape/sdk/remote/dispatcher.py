"""A worker of a server's tasks: the server matches, and handlers run here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

import anyio

from tape.core.errors import NotFound, StaleClaim, UsageError
from tape.core.reaction import Reaction
from tape.core.task import Claimed, ClaimRequest, Died, Done, Failed, Released, Settlement, TaskClaim
from tape.sdk.nouns import reactions, tasks
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.ledgers import RemoteLedgers
from tape.work.attempt import TaskHandler
from tape.work.outages import open_when_available, retry_outages
from tape.work.shutdown import until_signal
from tape.work.worker import Worker

_MS = timedelta(milliseconds=1)


class WorkerConfig(Protocol):
    """What a worker registers first, its handlers, its name and its limits."""

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
    """Works until a signal, or once; how many tasks were settled."""
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
        """Works until a signal; a second one does not wait for tasks in progress."""
        await retry_outages(lambda _: self.register(), "work")
        await until_signal(self._worker.run, self._worker.stop)
        return self._worker.handled


class Tasks:
    """The queue of a worker; each settlement is a call of its own."""

    def __init__(self, channel: Channel) -> None:
        ledgers = RemoteLedgers(channel)
        self._reactions = reactions.Reactions(ledgers)
        self._tasks = tasks.Tasks(ledgers)

    async def register(self, reaction: Reaction) -> Reaction:
        """Registers a reaction, active from now on."""
        return (await self._reactions.register(reaction)).reaction

    async def claim(self, request: ClaimRequest) -> Claimed:
        claimed = await self._tasks.claim(
            request.owner,
            limit=request.limit,
            reaction_ids=request.reaction_ids,
            shard=request.shard,
            lease=request.lease,
            max_bytes=request.max_bytes,
        )
        return Claimed(claimed.tasks, None if claimed.more_after_ms is None else claimed.more_after_ms * _MS)

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        async def extend(claim: TaskClaim) -> None:
            await self._tasks.extend(*claim, lease)

        return await _each(claims, extend)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        return await _each(settlements, self._settle)

    async def _settle(self, settlement: Settlement) -> None:
        claim, outcome = settlement
        match outcome:
            case Done():
                await self._tasks.complete(*claim)
            case Failed(error, after):
                await self._tasks.nack(*claim, error=error, retry_after_ms=None if after is None else after // _MS)
            case Released():
                await self._tasks.nack(*claim, release=True)
            case Died(error):
                await self._tasks.nack(*claim, error=error, permanent=True)


async def _each(
    items: "Sequence[TaskClaim] | Sequence[Settlement]", send: Callable[..., Awaitable[None]]
) -> list[StaleClaim | None]:
    """Sends all concurrently; a stale claim is a result, any other error is raised."""
    refused: dict[int, StaleClaim] = {}

    async def one(place: int) -> None:
        try:
            await send(items[place])
        except StaleClaim as stale:
            refused[place] = stale
        except NotFound as gone:
            refused[place] = StaleClaim(str(gone))

    async with anyio.create_task_group() as tasks:
        for place in range(len(items)):
            tasks.start_soon(one, place)
    return [refused.get(place) for place in range(len(items))]
