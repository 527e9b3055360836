"""What a fuzzer gives to a target, and how its bytes become the input of one."""

from collections.abc import Callable
from typing import TypeAlias

Target: TypeAlias = Callable[[bytes], None]


def text(data: bytes) -> str:
    """Any text, also with lone surrogates, which strings of JSON may hold."""
    return data.decode("utf-8", "surrogateescape")
