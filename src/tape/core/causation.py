"""Which entry the code that runs now is an answer to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tape.core.ids import GlobalSeq

_CAUSE: Final[ContextVar[GlobalSeq | None]] = ContextVar("tape_cause", default=None)


def current_cause() -> GlobalSeq | None:
    """What an event that names no cause is caused by, if anything."""
    return _CAUSE.get()


@contextmanager
def caused_by(global_seq: int) -> Iterator[None]:
    """Whatever is appended in this block is caused by an entry, in threads that it starts too; 0 is by none."""
    token = _CAUSE.set(GlobalSeq(global_seq) if global_seq else None)
    try:
        yield
    finally:
        _CAUSE.reset(token)
