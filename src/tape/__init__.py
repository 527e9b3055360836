"""Tape: one durable journal, and around it live streams, reactions, an outbox, forks and a data pipeline."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.bus.journal import Journal
    from tape.compose import open_journal
    from tape.core.errors import TapeError
    from tape.core.event import Entry, Event, Trace
    from tape.core.run import LiveRun, RunMeta

_HOMES = {
    "Entry": "tape.core.event",
    "Event": "tape.core.event",
    "Journal": "tape.bus.journal",
    "LiveRun": "tape.core.run",
    "RunMeta": "tape.core.run",
    "TapeError": "tape.core.errors",
    "Trace": "tape.core.event",
    "open_journal": "tape.compose",
}

__all__ = ["Entry", "Event", "Journal", "LiveRun", "RunMeta", "TapeError", "Trace", "open_journal"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tape' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
