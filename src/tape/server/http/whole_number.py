"""Whole numbers in queries, paths and headers."""

import re
from typing import Final

from tape.core.errors import UsageError, quoted

_NUMBER: Final = re.compile("(-?[0-9]{1,19})([.]0{1,19})?")


def whole_number(name: str, text: str, least: int, most: int, error: type[UsageError] = UsageError) -> int:
    """The number of a parameter; 7.0 is a whole number too, as in JSON Schema."""
    found = _NUMBER.fullmatch(text)
    if found is None or not least <= int(found[1]) <= most:
        raise error(f"{name} is a whole number from {least:,} to {most:,}, not {quoted(text)}")
    return int(found[1])
