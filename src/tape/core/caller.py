"""What a caller adds to the entries of a change: trace, cause and schema version."""

from dataclasses import dataclass
from typing import Final

from tape.core.event import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Without a trace, the current OpenTelemetry span is used."""

    trace: Trace | None = None
    schema_version: int = 1
    cause: int | None = None


PLAIN: Final = Caller()
