"""What tests have done, in numbers: a test adds, and a soak collects and reports."""

from collections import Counter
from typing import Final

_DONE: Final[Counter[str]] = Counter()
_NOTES: Final[list[str]] = []


def add(what: str, times: int = 1) -> None:
    """Counts something that this process has done, such as `kill -9 of a server`."""
    _DONE[what] += times


def note(sentence: str) -> None:
    """Something that a reader of a soak's report should know."""
    _NOTES.append(sentence)


def take() -> tuple[dict[str, int], list[str]]:
    """What was added since the last call."""
    taken = {what: times for what, times in _DONE.items() if times}, [*_NOTES]
    _DONE.clear()
    _NOTES.clear()
    return taken
