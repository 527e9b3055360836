"""What a call says of its caller, beside what it asks."""

from collections.abc import Iterable
from typing import Final

from tape.core.caller import Caller
from tape.core.errors import UsageError, quoted
from tape.wire import traceparent

TRACE: Final = "traceparent"
PARENT: Final = "tape-parent-span"
SCHEMA_VERSION: Final = "tape-schema-version"
CAUSE: Final = "tape-cause"


def caller_of(metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    """The span, the version of payloads and the cause that a call names."""
    said = {name: value for name, value in metadata if isinstance(value, str)}
    cause = _count(CAUSE, said.get(CAUSE, "0"))
    return Caller(
        trace=traceparent.parse(said.get(TRACE), said.get(PARENT, "")),
        schema_version=_count(SCHEMA_VERSION, said.get(SCHEMA_VERSION, "1")),
        cause=cause or None,
    )


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise UsageError(f"{name} is a whole number, not {quoted(text)}")
    return int(text)
