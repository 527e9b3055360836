"""The caller's span, as the W3C's `traceparent` header names it."""

import re
from typing import Final

from tape.core.event import Trace

_GRAMMAR: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)


def parse(header: str | None) -> Trace | None:
    """The span; a header that is wrong counts as missing, as the standard wants it."""
    found = _GRAMMAR.fullmatch(header.strip()) if header else None
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found[4]):
        return None
    if not found["trace"].strip("0") or not found["span"].strip("0"):
        return None
    return Trace(found["trace"], found["span"])
