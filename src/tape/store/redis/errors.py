"""Translates the errors of redis-py."""

from typing import Final

from redis import exceptions

from tape.core.errors import Unavailable, WriteOutcome

LOST: Final = (exceptions.ConnectionError, exceptions.TimeoutError, TimeoutError, OSError)

# Errors of a server that has done nothing; any other one is a mistake of ours.
_UNWILLING: Final = (exceptions.OutOfMemoryError, exceptions.ReadOnlyError, exceptions.NoPermissionError)
_UNWILLING_TO: Final = ("OOM", "MISCONF", "READONLY", "BUSY", "NOREPLICAS", "MASTERDOWN", "NOAUTH")


def lost(error: Exception, outcome: WriteOutcome) -> Unavailable:
    """The error for a server that did not answer."""
    if isinstance(error, exceptions.BusyLoadingError):
        return Unavailable("Redis is still loading its data")
    what = "cannot connect to Redis" if outcome == "nothing" else "the connection to Redis was lost"
    return Unavailable(f"{what} ({_error_text(error)})", outcome)


def translate(error: exceptions.ResponseError) -> Exception:
    """Translates an error answer if the fault is the server's."""
    text = _error_text(error)
    is_unwilling = isinstance(error, _UNWILLING) or text.startswith(_UNWILLING_TO)
    return Unavailable(f"Redis refuses ({text})") if is_unwilling else error


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
