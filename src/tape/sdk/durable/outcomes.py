"""Records outcomes in a run; one that another execution recorded first stays."""

from collections.abc import Awaitable

from tape.core.codec import JsonValue
from tape.core.effect import Effect, EffectStatus
from tape.core.errors import Conflict, StaleClaim
from tape.sdk.durable.run_context import RunContext


async def complete(
    context: RunContext,
    key: str,
    status: EffectStatus = EffectStatus.CONFIRMED,
    response: JsonValue = None,
    error: JsonValue = None,
) -> Effect:
    return await first_recorded(
        context,
        key,
        context.node.effects.complete(context.run_id, key, status, response=response, error=error, fence=context.fence),
    )


async def first_recorded(context: RunContext, key: str, recording: Awaitable[Effect]) -> Effect:
    """The effect with the outcome that is being recorded, or with the one that it already has."""
    try:
        return await recording
    except StaleClaim:
        raise
    except Conflict:
        effect = await context.node.effects.get(context.run_id, key)
        if effect is None:
            raise
        return effect
