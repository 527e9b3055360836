"""Which failures of a handler are retried."""

from typing import Final, TypeVar

import msgspec

from tape.core.outbox import OutboxEvent

T = TypeVar("T")

_INTEGRITY_ERRORS: Final = frozenset({"IntegrityError", "IntegrityConstraintViolationError"})


class TerminalHandlerError(Exception):
    """Raised by a handler when no further attempt will help; the delivery fails at once."""


def is_terminal(error: BaseException) -> bool:
    """Whether a retry cannot help; an unknown error is retried.

    A plain ValueError is retried: `parse` turns those of a payload's model into TerminalHandlerError.
    """
    kinds = type(error).__mro__
    if isinstance(error, TerminalHandlerError | msgspec.ValidationError):
        return True
    is_invalid = any(k.__name__ == "ValidationError" and k.__module__.startswith("pydantic") for k in kinds)
    return is_invalid or any(kind.__name__ in _INTEGRITY_ERRORS for kind in kinds)


def parse(event: OutboxEvent, model: type[T]) -> T:
    """The payload as the consumer's model. Unknown fields are ignored; a missing one is a TerminalHandlerError."""
    try:
        if validate := getattr(model, "model_validate", None):
            parsed: T = validate(dict(event.payload))
            return parsed
        return msgspec.convert(dict(event.payload), type=model)
    except ValueError as error:  # the errors of pydantic and of msgspec are ValueErrors
        raise TerminalHandlerError(f"the payload of {event.event_type} is no {model.__name__}: {error}") from error
