"""Reactions and the queue of their tasks, behind a wire."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import anyio

from tape.core.errors import NotFound, StaleClaim
from tape.core.reaction import Reaction
from tape.core.task import Claimed, ClaimRequest, Died, Done, Failed, Released, Settlement, TaskClaim
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.tasks import REACTION, TASK

_MS = timedelta(milliseconds=1)


class Tasks:
    """A queue as the loop of a worker wants it; what it says together travels together, each by itself."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def register(self, reaction: Reaction) -> Reaction:
        """Registers a reaction, active from now on."""
        request = REACTION.message(_sayable(reaction))
        return REACTION.value(await self._channel.call("RegisterReaction", request, pb.Reaction))

    async def claim(self, request: ClaimRequest) -> Claimed:
        message = build(
            pb.ClaimTasksRequest,
            owner=request.owner,
            max=request.limit,
            shard=request.shard,
            lease_ms=request.lease // _MS,
            reaction_ids=request.reaction_ids,
            max_bytes=request.max_bytes,
        )
        answer = await self._channel.call("ClaimTasks", message, pb.ClaimTasksResponse)
        more_after = answer.more_after_ms * _MS if answer.HasField("more_after_ms") else None
        return Claimed([TASK.value(task) for task in answer.tasks], more_after)

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        async def extend(claim: TaskClaim) -> None:
            request = build(pb.ExtendTaskRequest, **claim._asdict(), lease_ms=lease // _MS)
            await self._channel.call("ExtendTask", request, pb.ExtendTaskResponse)

        return await _each(claims, extend)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        return await _each(settlements, self._settle)

    async def _settle(self, settlement: Settlement) -> None:
        claim, outcome = settlement
        match outcome:
            case Done():
                done = build(pb.CompleteTaskRequest, **claim._asdict())
                await self._channel.call("CompleteTask", done, pb.CompleteTaskResponse)
            case Failed(error, after):
                wait = None if after is None else after // _MS
                failed = build(pb.NackTaskRequest, **claim._asdict(), error=error, retry_after_ms=wait)
                await self._channel.call("NackTask", failed, pb.NackTaskResponse)
            case Released():
                released = build(pb.NackTaskRequest, **claim._asdict(), release=True)
                await self._channel.call("NackTask", released, pb.NackTaskResponse)
            case Died(error):
                died = build(pb.NackTaskRequest, **claim._asdict(), error=error, permanent=True)
                await self._channel.call("NackTask", died, pb.NackTaskResponse)


def _sayable(reaction: Reaction) -> Reaction:
    """The same in effect, without the zeros that stand for what is usual on the wire."""
    last = 1 if reaction.retry_max == 0 else reaction.dlq_after_n
    return replace(reaction, dlq_after_n=last, retry_backoff_ms=reaction.retry_backoff_ms or 1)


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
