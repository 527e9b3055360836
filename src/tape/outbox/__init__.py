"""The outbox: events that are published by your own database transaction."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.core.outbox import DEFAULT_RETRY_POLICY, OutboxEvent, OutboxRetention, RetryPolicy
    from tape.outbox.database import migrate
    from tape.outbox.failures import TerminalHandlerError, parse
    from tape.outbox.handling import EventHandler
    from tape.outbox.listener import EventListener, OutboxListener
    from tape.outbox.publisher import EventPublisher, OutboxPublisher, publish

_MODULES = {
    "DEFAULT_RETRY_POLICY": "tape.core.outbox",
    "EventHandler": "tape.outbox.handling",
    "EventListener": "tape.outbox.listener",
    "EventPublisher": "tape.outbox.publisher",
    "OutboxEvent": "tape.core.outbox",
    "OutboxListener": "tape.outbox.listener",
    "OutboxPublisher": "tape.outbox.publisher",
    "OutboxRetention": "tape.core.outbox",
    "RetryPolicy": "tape.core.outbox",
    "TerminalHandlerError": "tape.outbox.failures",
    "migrate": "tape.outbox.database",
    "parse": "tape.outbox.failures",
    "publish": "tape.outbox.publisher",
}

__all__ = [
    "DEFAULT_RETRY_POLICY",
    "EventHandler",
    "EventListener",
    "EventPublisher",
    "OutboxEvent",
    "OutboxListener",
    "OutboxPublisher",
    "OutboxRetention",
    "RetryPolicy",
    "TerminalHandlerError",
    "migrate",
    "parse",
    "publish",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'tape.outbox' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
