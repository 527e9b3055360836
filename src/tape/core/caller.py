"""What a caller says of itself with a change: the span it is in, and the version of the payloads it writes."""

from dataclasses import dataclass
from typing import Final

from tape.core.event import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """It goes onto the entry; without a trace that of the current span is taken."""

    trace: Trace | None = None
    schema_version: int = 1
    cause: int | None = None


PLAIN: Final = Caller()
