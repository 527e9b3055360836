"""Gates in durable functions: wait for a signal without holding a worker."""

from tape.core import codec
from tape.core.codec import JsonValue
from tape.sdk.durable.errors import Parked
from tape.sdk.durable.run_context import current_run, step


@step
async def gate(name: str, context: JsonValue = None) -> JsonValue:
    """The signal's payload. Until it arrives the function ends here; then it is executed again.

    A run's second wait at the same gate gets the second signal.
    """
    run = current_run()
    place = run.occurrence(f"gate {name}")
    result = await run.node.gates.wait(run.run_id, name, place, context, fence=run.fence)
    if result.resolution_json is None:
        raise Parked
    return codec.decode(result.resolution_json or "null")
