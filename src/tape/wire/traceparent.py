"""Parses and writes the W3C `traceparent` header."""

import re
from typing import Final

from tape.core.event import Trace

_GRAMMAR: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)


def parse(header: str | None, parent_span_id: str = "") -> Trace | None:
    """The span of a header; an invalid header counts as missing, as the standard requires."""
    found = _GRAMMAR.fullmatch(header.strip()) if header else None
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found[4]):
        return None
    if not found["trace"].strip("0") or not found["span"].strip("0"):
        return None
    return Trace(found["trace"], found["span"], parent_span_id)


def written(trace: Trace | None) -> str:
    """The header of a span; empty without one."""
    return "" if trace is None else f"00-{trace.trace_id}-{trace.span_id}-01"
