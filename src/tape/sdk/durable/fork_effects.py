"""Effects in a fork that suppresses them: recorded results are served, or a stub is called."""

from collections.abc import Callable
from typing import Any

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.effect import Effect, EffectStatus
from tape.core.fork_policy import EffectPolicy, key_in, parent_of
from tape.sdk.durable.calling import call_function
from tape.sdk.durable.outcomes import complete
from tape.sdk.durable.run_context import RunContext


async def complete_without_effect(context: RunContext, begun: Effect, stub: Callable[[], Any] | None) -> Effect:
    """Completes an effect without executing it."""
    if context.policy is EffectPolicy.REPLAY:
        return await _replayed(context, begun)
    response: JsonValue = None if stub is None else codec.decode(codec.encode(await call_function(stub)))
    return await complete(context, begun.idempotency_key, response=response)


async def recorded(context: RunContext, key: str) -> Effect | None:
    """The same effect's outcome in the parent, if it is known."""
    parent = parent_of(context.run.labels)
    if parent is None:
        return None
    effect = await context.node.effects.get(parent, key_in(key, context.run_id, parent))
    return effect if effect is not None and effect.is_settled else None


async def _replayed(context: RunContext, begun: Effect) -> Effect:
    """Fails if the parent did not do this, or did it with another request."""
    past = await recorded(context, begun.idempotency_key)
    if past is None or past.request_json not in ("", begun.request_json):
        missing: JsonValue = {"type": "NotRecorded", "message": "its parent never did this, so there is no result"}
        return await complete(context, begun.idempotency_key, EffectStatus.FAILED, error=missing)
    response, error = (codec.decode(text) if text else None for text in (past.response_json, past.error_json))
    return await complete(context, begun.idempotency_key, past.status, response, error)
