"""OutboxWaits for somebody outside, for as long as it takes and in nobody's hands."""

from tape.core import codec
from tape.core.codec import JsonValue
from tape.sdk.durable.errors import Parked
from tape.sdk.durable.run_context import current_run, step


@step
async def gate(name: str, context: JsonValue = None) -> JsonValue:
    """What was answered at a gate. Until it is, the function ends here, and is begun again with the answer.

    The second time that a run comes to the same gate it waits for the second answer.
    """
    run = current_run()
    place = run.occurrence(f"gate {name}")
    result = await run.node.gates.wait(run.run_id, name, place, context, fence=run.fence)
    if result.resolution_json is None:
        raise Parked
    return codec.decode(result.resolution_json or "null")
