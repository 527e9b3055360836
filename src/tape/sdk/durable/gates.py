"""Waiting for somebody outside, for as long as it takes and in nobody's hands."""

from tape.core import codec
from tape.core.codec import JsonValue
from tape.sdk.durable.answers import Parked
from tape.sdk.durable.running import running, step


@step
async def gate(name: str, context: JsonValue = None) -> JsonValue:
    """What was answered at a gate. Until it is, the function ends here, and is begun again with the answer.

    The second time that a run comes to the same gate it waits for the second answer.
    """
    found = running()
    place = found.place(f"gate {name}")
    passage = await found.node.gates.wait(found.run_id, name, place, context, fence=found.fence)
    if passage.resolution_json is None:
        raise Parked
    return codec.decode(passage.resolution_json or "null")
