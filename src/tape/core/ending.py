"""The last entry of a run that failed or was cancelled."""

from typing import Final, Literal, TypeAlias

from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.fork import RUN
from tape.core.ids import RunId

MAX_REASON: Final = 500

Ending: TypeAlias = Literal["failed", "cancelled"]


def ending(run_id: RunId, how: Ending, reason: str) -> Event:
    """The entry; the session segments of its subject are blank, because the run may belong to no session."""
    payload: JsonValue = {"reason": "".join(char if char.isprintable() else " " for char in reason[:MAX_REASON])}
    return Event(run_id=run_id, payload=payload, kind=RUN, type=how, subject=f"/tape/run/{how}/_/_/_/{run_id}")
