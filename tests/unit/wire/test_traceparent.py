"""The caller's span: parsed as the W3C defines it; an invalid header counts as missing."""

import pytest

from tape.core.event import Trace
from tape.wire.traceparent import parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("text", [f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00", f"01-{TRACE}-{SPAN}-01-more"])
def test_a_traceparent_names_the_callers_span(text: str) -> None:
    assert parse(text) == Trace(TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "x", f"00-{TRACE}-{SPAN}", f"00-{TRACE.upper()}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n-",
    ],
)  # fmt: skip
def test_anything_else_counts_as_missing(text: str | None) -> None:
    assert parse(text) is None
