"""The world as a run saw it the first time: time, chance and whatever else would be different the next time."""

import random as chance
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tape.core.codec import JsonValue
from tape.core.effect import Effect, EffectStatus, Semantics
from tape.core.fork_policy import EffectPolicy
from tape.sdk.durable.calling import called
from tape.sdk.durable.effects import result_of
from tape.sdk.durable.forked import recorded
from tape.sdk.durable.running import Running, awaited_or_not, running, step


async def sampled(found: Running, name: str, look: Callable[[], Any] | None) -> JsonValue:
    """What was seen here the first time, the time itself if there is nothing to look with.

    A fork that replays sees what its parent saw.
    """
    key = f"{found.run_id}/sample-{name}-{found.place(f'sample {name}')}"
    begun = await found.node.effects.begin(
        found.run_id, f"sample-{name}", decision_index=found.decision_index, key=key,
        semantics=Semantics.OBSERVE_ONLY, fence=found.fence,
    )  # fmt: skip
    if begun.status is not EffectStatus.PENDING:
        return result_of(begun)
    past = await recorded(found, key) if found.policy is EffectPolicy.REPLAY else None
    seen = await _look(begun, look) if past is None else result_of(past)
    done = await found.node.effects.complete(found.run_id, key, response=seen, fence=found.fence)
    return result_of(done)


async def _look(begun: Effect, look: Callable[[], Any] | None) -> Any:
    return begun.began_at_ms / 1000 if look is None else await called(look)


@step
async def sample(name: str, look: Callable[[], Any]) -> JsonValue:
    """What a function returns the first time that the run comes here; it may look at the world, not change it."""
    return await sampled(running(), name, look)


@step
async def now() -> JsonValue:
    """The store's time in seconds since 1970, as it was when the run first came here."""
    return await sampled(running(), "now", None)


@step
async def uuid() -> JsonValue:
    """A name that nothing else has, and that the run keeps."""
    return await sampled(running(), "uuid", lambda: str(uuid4()))


@step
async def random() -> JsonValue:
    """A number from 0 up to 1, the same however often the run comes here."""
    return await sampled(running(), "random", chance.random)


@awaited_or_not
async def mutation() -> JsonValue:
    """What was changed for the fork that this run is; None if nothing was, or if it is none."""
    found = running()
    changed = found.effects.get(f"{found.run_id}/mutation")
    return None if changed is None else result_of(changed)
