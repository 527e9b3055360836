"""What redis-py says, as a caller is told it."""

from typing import Final

from redis import exceptions

from tape.core.errors import Unavailable, WriteOutcome

LOST: Final = (exceptions.ConnectionError, exceptions.TimeoutError, TimeoutError, OSError)

# What a server answers before it has done anything; what begins otherwise is our own mistake.
_UNWILLING: Final = (exceptions.OutOfMemoryError, exceptions.ReadOnlyError, exceptions.NoPermissionError)
_UNWILLING_TO: Final = ("OOM", "MISCONF", "READONLY", "BUSY", "NOREPLICAS", "MASTERDOWN", "NOAUTH")


def lost(error: Exception, outcome: WriteOutcome) -> Unavailable:
    """The server did not answer."""
    if isinstance(error, exceptions.BusyLoadingError):
        return Unavailable("Redis is still loading its data")
    what = "cannot connect to Redis" if outcome == "nothing" else "the connection to Redis was lost"
    return Unavailable(f"{what} ({_said(error)})", outcome)


def translate(error: exceptions.ResponseError) -> Exception:
    """What it answered, if the fault is its own."""
    said = _said(error)
    is_unwilling = isinstance(error, _UNWILLING) or said.startswith(_UNWILLING_TO)
    return Unavailable(f"Redis refuses ({said})") if is_unwilling else error


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
