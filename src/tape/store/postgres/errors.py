"""What asyncpg says, as a caller is told it."""

import asyncpg

from tape.core.errors import TapeError, Unavailable, UsageError, WriteOutcome

LOST = (
    ConnectionError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # used just after the server had ended it, before that was noticed
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
    """The database's own errors become ours; those of our code stay.

    The outcome is what is known when the answer was lost: whoever only reads, or has not committed, wrote nothing.
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
    """Whether it is the queue of notifications that is full, which has the code of a value that is too large."""
    return isinstance(error, asyncpg.ProgramLimitExceededError) and "NOTIFY queue" in str(error)


def is_lost(connection: asyncpg.Connection) -> bool:
    """Whether a connection has ended; one of a pool that ended while it was lent can no longer be asked even that."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def refused(error: Exception) -> UsageError:
    """Why a server that is up refuses a connection: a password, a role, a database. Waiting does not help."""
    return UsageError(f"Postgres refuses the connection ({error_text(error)}); check the URL")


def error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
