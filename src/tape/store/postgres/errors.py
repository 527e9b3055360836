"""Translates the errors of asyncpg."""

import asyncpg

from tape.core.errors import TapeError, Unavailable, UsageError, WriteOutcome

LOST = (
    ConnectionError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised when the server has just closed the connection
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
BAD_VALUE = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,  # with it a wrong password
    asyncpg.InvalidCatalogNameError,
    asyncpg.ClientConfigurationError,
)
_BUSY = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.TooManyConnectionsError,
)
_NO_TEXT = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)


def translate(error: Exception, outcome: WriteOutcome = "nothing") -> Exception:
    """Translates errors of the database; those of our own code stay.

    The outcome is for a lost answer: a read, or a transaction that did not commit, has written nothing.
    """
    if isinstance(error, TapeError):
        return error
    if is_crowded(error) or isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return Unavailable(f"Postgres takes no more ({error_text(error)})")
    if isinstance(error, LOST):
        return Unavailable(f"the connection to Postgres was lost ({error_text(error)})", outcome)
    if isinstance(error, _BUSY):
        return Unavailable(f"Postgres is busy ({error_text(error)})")
    if isinstance(error, _NO_TEXT) or isinstance(error.__cause__, UnicodeEncodeError):
        return UsageError("a text holds U+0000 or a lone surrogate, which no store can keep")
    if isinstance(error, asyncpg.InsufficientResourcesError):
        return Unavailable(f"Postgres has run out of something ({error_text(error)})")
    return error


def is_crowded(error: Exception) -> bool:
    """Whether the queue of notifications is full; Postgres reports it with the code of a too large value."""
    return isinstance(error, asyncpg.ProgramLimitExceededError) and "NOTIFY queue" in str(error)


def is_lost(connection: asyncpg.Connection) -> bool:
    """Whether a connection has ended; one of a pool raises when it ended while it was in use."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def refused(error: Exception) -> UsageError:
    """The error of a refused connection (password, role, database), for which waiting does not help."""
    return UsageError(f"Postgres refuses the connection ({error_text(error)}); check the URL")


def error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
