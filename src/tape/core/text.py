"""Texts in ledgers: names that users choose, and bodies that Tape does not interpret."""

import re
from typing import Final

from tape.core.errors import TooLarge, UsageError, quoted

MAX_NAME: Final = 256
MAX_BODY: Final = 1 << 20
_IS_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def check_name(what: str, text: str, *, may_be_empty: bool = False) -> str:
    """Returns a short printable text."""
    is_name = isinstance(text, str) and len(text) <= MAX_NAME and text.isprintable() and bool(text or may_be_empty)
    if not is_name:
        raise UsageError(f"{what} is 1 to {MAX_NAME} printable characters, not {quoted(text)}")
    return text


def check_body(what: str, text: str) -> str:
    """Returns a text that a store can keep; usually it is JSON."""
    if not isinstance(text, str):
        raise UsageError(f"{what} is text, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{what} holds a lone surrogate") from None
    if size > MAX_BODY:
        raise TooLarge(f"{what} is at most {MAX_BODY:,} bytes, not {size:,}")
    return text


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD for each character that no store can keep."""
    return _IS_NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def check_count(what: str, number: int, least: int = 0) -> int:
    if type(number) is not int or not least <= number < 1 << 63:
        raise UsageError(f"{what} is a whole number from {least} on, not {quoted(number)}")
    return number
