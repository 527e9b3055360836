"""The queue of a server's tasks."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import anyio

from tape.core.errors import NotFound, StaleClaim
from tape.core.reaction import Reaction
from tape.core.task import Claimed, ClaimRequest, Died, Done, Failed, Released, Settlement, TaskClaim
from tape.sdk.nouns import reactions, tasks
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.ledgers import Ledgers

_MS = timedelta(milliseconds=1)


class Tasks:
    """A queue as the loop of a worker needs it; what is settled together is sent at once, each by itself."""

    def __init__(self, channel: Channel) -> None:
        ledgers = Ledgers(channel)
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
    asked: "Sequence[TaskClaim] | Sequence[Settlement]", ask: Callable[..., Awaitable[None]]
) -> list[StaleClaim | None]:
    """What came of each, all at once; only that a claim is stale is an answer, anything else an error."""
    refused: dict[int, StaleClaim] = {}

    async def one(place: int) -> None:
        try:
            await ask(asked[place])
        except StaleClaim as stale:
            refused[place] = stale
        except NotFound as gone:
            refused[place] = StaleClaim(str(gone))

    async with anyio.create_task_group() as tasks:
        for place in range(len(asked)):
            tasks.start_soon(one, place)
    return [refused.get(place) for place in range(len(asked))]
