"""Python values as the texts that ledgers keep."""

from tape.core import codec
from tape.core.codec import JsonValue


def text_of(value: JsonValue) -> str:
    """The JSON of a value; nothing for None."""
    return "" if value is None else codec.encode(value)
