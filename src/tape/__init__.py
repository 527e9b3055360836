"""Tape: one durable journal, and around it live streams, reactions, an outbox, forks and a data pipeline."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.bus.journal import Journal
    from tape.compose import aconnect, connect, open_journal, resume, run_agent
    from tape.core.caller import Caller
    from tape.core.effect import Compensation, DispatchMode, EffectStatus, Resolution, Semantics
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
        NotReady,
        ReservedSubject,
        RunClosed,
        RunNotFound,
        RunOpen,
        ScopeDenied,
        StaleClaim,
        TapeError,
        TooLarge,
        Unavailable,
        Unsupported,
        UsageError,
        VersionConflict,
    )
    from tape.core.event import Entry, Event, Trace
    from tape.core.obligation import ObligationStatus
    from tape.core.producer import producer
    from tape.core.run import LiveRun, RunMeta
    from tape.core.run_state import Identity, RunStatus
    from tape.reactions import (
        on,
        on_decision_recorded,
        on_effect_confirmed,
        on_effect_failed,
        on_effect_unknown,
        on_gate,
        on_run,
        on_value_change,
        on_value_deleted,
    )
    from tape.sdk.durable.budgets import Budget, reserve
    from tape.sdk.durable.calling import idempotency_key
    from tape.sdk.durable.compensators import compensator
    from tape.sdk.durable.decisions import decide
    from tape.sdk.durable.effects import effect
    from tape.sdk.durable.errors import AckLost, EffectFailed, EffectUnknown
    from tape.sdk.durable.gates import gate
    from tape.sdk.durable.retries import Retries
    from tape.sdk.durable.samples import mutation, now, random, sample, uuid

_HOMES = {
    "tape.bus.journal": ("Journal",),
    "tape.compose": ("aconnect", "connect", "open_journal", "resume", "run_agent"),
    "tape.core.caller": ("Caller",),
    "tape.core.effect": ("Compensation", "DispatchMode", "EffectStatus", "Resolution", "Semantics"),
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
        "NotReady",
        "ReservedSubject",
        "RunClosed",
        "RunNotFound",
        "RunOpen",
        "ScopeDenied",
        "StaleClaim",
        "TapeError",
        "TooLarge",
        "Unavailable",
        "Unsupported",
        "UsageError",
        "VersionConflict",
    ),
    "tape.core.event": ("Entry", "Event", "Trace"),
    "tape.core.producer": ("producer",),
    "tape.core.obligation": ("ObligationStatus",),
    "tape.core.run": ("LiveRun", "RunMeta"),
    "tape.core.run_state": ("Identity", "RunStatus"),
    "tape.reactions": (
        "on",
        "on_decision_recorded",
        "on_effect_confirmed",
        "on_effect_failed",
        "on_effect_unknown",
        "on_gate",
        "on_run",
        "on_value_change",
        "on_value_deleted",
    ),
    "tape.sdk.durable.errors": ("AckLost", "EffectFailed", "EffectUnknown"),
    "tape.sdk.durable.budgets": ("Budget", "reserve"),
    "tape.sdk.durable.compensators": ("compensator",),
    "tape.sdk.durable.decisions": ("decide",),
    "tape.sdk.durable.calling": ("idempotency_key",),
    "tape.sdk.durable.effects": ("effect",),
    "tape.sdk.durable.gates": ("gate",),
    "tape.sdk.durable.retries": ("Retries",),
    "tape.sdk.durable.samples": ("mutation", "now", "random", "sample", "uuid"),
}
_FACADES = ("broker", "reactions", "testing")
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AckLost",
    "BrokerOverflowError",
    "Budget",
    "Caller",
    "Compensation",
    "Conflict",
    "Corrupt",
    "DispatchMode",
    "EffectFailed",
    "EffectStatus",
    "EffectUnknown",
    "Entry",
    "Event",
    "ExpectedSeqConflict",
    "Identity",
    "InvalidCursor",
    "Journal",
    "JsonLimit",
    "KeyConflict",
    "LimitReached",
    "LiveRun",
    "NotFound",
    "NotReady",
    "ObligationStatus",
    "ReservedSubject",
    "Resolution",
    "Retries",
    "RunClosed",
    "RunMeta",
    "RunNotFound",
    "RunOpen",
    "RunStatus",
    "ScopeDenied",
    "Semantics",
    "StaleClaim",
    "TapeError",
    "TooLarge",
    "Trace",
    "Unavailable",
    "Unsupported",
    "UsageError",
    "VersionConflict",
    "aconnect",
    "compensator",
    "connect",
    "decide",
    "effect",
    "gate",
    "idempotency_key",
    "mutation",
    "now",
    "on",
    "on_decision_recorded",
    "on_effect_confirmed",
    "on_effect_failed",
    "on_effect_unknown",
    "on_gate",
    "on_run",
    "on_value_change",
    "on_value_deleted",
    "open_journal",
    "producer",
    "random",
    "reserve",
    "resume",
    "run_agent",
    "sample",
    "uuid",
]


def __getattr__(name: str) -> object:
    if name in _FACADES:
        return import_module(f"tape.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tape' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
