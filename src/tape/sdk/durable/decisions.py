"""What a model decides in a durable function: it is asked once, and what it said stays said."""

from collections.abc import Callable
from typing import Any

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.errors import Conflict
from tape.sdk.durable.calling import called
from tape.sdk.durable.running import Running, running, step
from tape.sdk.nouns.body import text_of


@step
async def decide(
    ask: Callable[[], Any], *, model: str = "", request: JsonValue = None, rationale: str = "", policy_version: str = ""
) -> JsonValue:
    """The run's next decision: what was recorded here, or what asking says now. Effects that follow belong to it."""
    return await decided(running(), ask, model, request, rationale, policy_version)


async def decided(
    found: Running, ask: Callable[[], Any], model: str, request: JsonValue, rationale: str, policy_version: str
) -> JsonValue:
    found.decision_index += 1
    index = found.decision_index
    known = found.decisions.get(index)
    if known is None:
        known = await found.node.decisions.record(
            found.run_id, index, model=model, request=request, response=await called(ask), rationale=rationale,
            policy_version=policy_version, fence=found.fence,
        )  # fmt: skip
    if known.request_json not in ("", text_of(request)):
        raise Conflict(f"run {found.run_id!r} asks for another decision {index} than the first time")
    return codec.decode(known.response_json or "null")
