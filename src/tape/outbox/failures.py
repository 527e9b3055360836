"""Which failures are worth another attempt."""

from typing import Final, TypeVar

import msgspec

from tape.core.outbox import OutboxEvent

T = TypeVar("T")

_BROKEN_RULES: Final = frozenset({"IntegrityError", "IntegrityConstraintViolationError"})


class TerminalHandlerError(Exception):
    """A handler says that no further attempt will help."""


def is_terminal(error: BaseException) -> bool:
    """Whether trying again is no use; whatever is not known to be is transient.

    A ValueError alone is not: only one that a payload's model raised, which `parse` tells apart.
    """
    kinds = type(error).__mro__
    if isinstance(error, TerminalHandlerError | msgspec.ValidationError):
        return True
    is_invalid = any(k.__name__ == "ValidationError" and k.__module__.startswith("pydantic") for k in kinds)
    return is_invalid or any(kind.__name__ in _BROKEN_RULES for kind in kinds)


def parse(event: OutboxEvent, model: type[T]) -> T:
    """The payload as the consumer's own model: fields it does not know are ignored, one that is missing is final."""
    try:
        if validate := getattr(model, "model_validate", None):
            made: T = validate(dict(event.payload))
            return made
        return msgspec.convert(dict(event.payload), type=model)
    except ValueError as error:  # what pydantic and msgspec raise are both ValueErrors
        raise TerminalHandlerError(f"the payload of {event.event_type} is no {model.__name__}: {error}") from error
