"""Tape: one durable journal, and around it live streams, reactions, an outbox, forks and a data pipeline."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.bus.journal import Journal
    from tape.compose import open_journal
    from tape.core.errors import (
        BrokerOverflowError,
        Conflict,
        Corrupt,
        ExpectedSeqConflict,
        InvalidCursor,
        JsonLimit,
        KeyConflict,
        LimitReached,
        NotFound,
        ReservedSubject,
        RunClosed,
        RunNotFound,
        RunOpen,
        TapeError,
        TooLarge,
        Unavailable,
        UsageError,
        VersionConflict,
    )
    from tape.core.event import Entry, Event, Trace
    from tape.core.producer import producer
    from tape.core.run import LiveRun, RunMeta

_HOMES = {
    "tape.bus.journal": ("Journal",),
    "tape.compose": ("open_journal",),
    "tape.core.errors": (
        "BrokerOverflowError",
        "Conflict",
        "Corrupt",
        "ExpectedSeqConflict",
        "InvalidCursor",
        "JsonLimit",
        "KeyConflict",
        "LimitReached",
        "NotFound",
        "ReservedSubject",
        "RunClosed",
        "RunNotFound",
        "RunOpen",
        "TapeError",
        "TooLarge",
        "Unavailable",
        "UsageError",
        "VersionConflict",
    ),
    "tape.core.event": ("Entry", "Event", "Trace"),
    "tape.core.producer": ("producer",),
    "tape.core.run": ("LiveRun", "RunMeta"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BrokerOverflowError",
    "Conflict",
    "Corrupt",
    "Entry",
    "Event",
    "ExpectedSeqConflict",
    "InvalidCursor",
    "Journal",
    "JsonLimit",
    "KeyConflict",
    "LimitReached",
    "LiveRun",
    "NotFound",
    "ReservedSubject",
    "RunClosed",
    "RunMeta",
    "RunNotFound",
    "RunOpen",
    "TapeError",
    "TooLarge",
    "Trace",
    "Unavailable",
    "UsageError",
    "VersionConflict",
    "open_journal",
    "producer",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tape' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
