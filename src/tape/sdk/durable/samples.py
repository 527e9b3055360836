"""Recorded observations: time, random numbers and other values that would differ in the next execution."""

import random as chance
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tape.core.codec import JsonValue
from tape.core.effect import Effect, EffectStatus, Semantics
from tape.core.fork_policy import EffectPolicy
from tape.sdk.durable.calling import call_function
from tape.sdk.durable.effects import result_of
from tape.sdk.durable.fork_effects import recorded
from tape.sdk.durable.outcomes import complete
from tape.sdk.durable.run_context import RunContext, current_run, step, sync_or_async


async def record_sample(context: RunContext, name: str, look: Callable[[], Any] | None) -> JsonValue:
    """The recorded value, or a new one; without a function, the store's time.

    A replaying fork gets its parent's value.
    """
    key = f"{context.run_id}/sample-{name}-{context.occurrence(f'sample {name}')}"
    begun = await context.begin_effect(f"sample-{name}", key=key, semantics=Semantics.OBSERVE_ONLY)
    if begun.status is not EffectStatus.PENDING:
        return result_of(begun)
    past = await recorded(context, key) if context.policy is EffectPolicy.REPLAY else None
    seen = await _look(begun, look) if past is None else result_of(past)
    return result_of(await complete(context, key, response=seen))


async def _look(begun: Effect, look: Callable[[], Any] | None) -> Any:
    return begun.began_at_ms / 1000 if look is None else await call_function(look)


@step
async def sample(name: str, look: Callable[[], Any]) -> JsonValue:
    """What a function returned when the run first came here; it may read the outside world but not change it."""
    return await record_sample(current_run(), name, look)


@step
async def now() -> JsonValue:
    """The store's time in seconds since 1970 when the run first came here."""
    return await record_sample(current_run(), "now", None)


@step
async def uuid() -> JsonValue:
    """A random UUID that the run keeps."""
    return await record_sample(current_run(), "uuid", lambda: str(uuid4()))


@step
async def random() -> JsonValue:
    """A number from 0 up to 1 that the run keeps."""
    return await record_sample(current_run(), "random", chance.random)


@sync_or_async
async def mutation() -> JsonValue:
    """The mutation of this fork, or None."""
    context = current_run()
    changed = context.effects.get(f"{context.run_id}/mutation")
    return None if changed is None else result_of(changed)
