"""Which entry the code that runs now is an answer to."""

from contextvars import ContextVar
from typing import Final

from tape.core.ids import GlobalSeq

_CAUSE: Final[ContextVar[GlobalSeq | None]] = ContextVar("tape_cause", default=None)


def current_cause() -> GlobalSeq | None:
    """What an event that names no cause is caused by, if anything."""
    return _CAUSE.get()


class caused_by:  # noqa: N801 - it is read as a word of a sentence
    """Whatever is appended in this block is caused by an entry, in threads that it starts too; 0 is by none."""

    __slots__ = ("_cause", "_token")

    def __init__(self, global_seq: int) -> None:
        self._cause = GlobalSeq(global_seq) if global_seq else None

    def __enter__(self) -> None:
        self._token = _CAUSE.set(self._cause)

    def __exit__(self, *_: object) -> None:
        _CAUSE.reset(self._token)
