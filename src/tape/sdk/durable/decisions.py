"""Decisions of a model in a durable function: the model is asked once, and its answer is recorded."""

from collections.abc import Callable
from typing import Any

from tape.core import codec
from tape.core.codec import JsonValue, encode_optional
from tape.core.errors import Conflict, StaleClaim
from tape.sdk.durable.calling import call_function
from tape.sdk.durable.run_context import RunContext, current_run, step


@step
async def decide(
    ask: Callable[[], Any], *, model: str = "", request: JsonValue = None, rationale: str = "", policy_version: str = ""
) -> JsonValue:
    """The run's next decision: the recorded one, or the answer of `ask`. The effects after it belong to it."""
    return await decided(current_run(), ask, model, request, rationale, policy_version)


async def decided(
    context: RunContext, ask: Callable[[], Any], model: str, request: JsonValue, rationale: str, policy_version: str
) -> JsonValue:
    context.decision_index += 1
    index = context.decision_index
    known = context.decisions.get(index)
    if known is None:
        answer = await call_function(ask)
        try:
            known = await context.node.decisions.record(
                context.run_id, index, model=model, request=request, response=answer, rationale=rationale,
                policy_version=policy_version, fence=context.fence,
            )  # fmt: skip
        except StaleClaim:
            raise
        except Conflict:  # another execution has recorded one, which stays
            known = await context.node.decisions.get(context.run_id, index)
            if known is None:
                raise
    if known.request_json not in ("", encode_optional(request)):
        raise context.refuse_other(f"decision {index}")
    return codec.decode(known.response_json or "null")
