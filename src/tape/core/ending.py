"""How a run ends when it does not simply end: an entry of its own says so."""

from typing import Final, Literal, TypeAlias

from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.fork import RUN
from tape.core.ids import RunId

MAX_REASON: Final = 500

Ending: TypeAlias = Literal["failed", "cancelled"]


def ending(run_id: RunId, how: Ending, reason: str) -> Event:
    """The last entry of such a run; one that belongs to no session has blanks in the subject's place for it."""
    payload: JsonValue = {"reason": "".join(char if char.isprintable() else " " for char in reason[:MAX_REASON])}
    return Event(run_id=run_id, payload=payload, kind=RUN, type=how, subject=f"/tape/run/{how}/_/_/_/{run_id}")
