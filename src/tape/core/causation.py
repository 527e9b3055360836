"""The entry that caused the code that is running now."""

from contextvars import ContextVar
from typing import Final

from tape.core.ids import GlobalSeq

_CAUSE: Final[ContextVar[GlobalSeq | None]] = ContextVar("tape_cause", default=None)


def current_cause() -> GlobalSeq | None:
    """The cause of events that name none, if there is one."""
    return _CAUSE.get()


class caused_by:  # noqa: N801 - it is read as a word of a sentence
    """Sets the cause of everything appended in this block, also by threads it starts; 0 means no cause."""

    __slots__ = ("_cause", "_token")

    def __init__(self, global_seq: int) -> None:
        self._cause = GlobalSeq(global_seq) if global_seq else None

    def __enter__(self) -> None:
        self._token = _CAUSE.set(self._cause)

    def __exit__(self, *_: object) -> None:
        _CAUSE.reset(self._token)
