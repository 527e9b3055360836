"""What asyncpg says, as a caller is told it."""

import asyncpg

from tape.core.errors import TapeError, Unavailable

LOST = (
    ConnectionError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError, asyncpg.TooManyConnectionsError)


def translate(error: Exception) -> Exception:
    """The database's own errors become ours; those of a bad value or of our code stay."""
    if isinstance(error, TapeError):
        return error
    if isinstance(error, LOST):
        return Unavailable(f"the connection to Postgres was lost ({_said(error)})", "unknown")
    if isinstance(error, _BUSY):
        return Unavailable(f"Postgres is busy ({_said(error)})")
    if isinstance(error, asyncpg.InsufficientResourcesError):
        return Unavailable(f"Postgres has run out of something ({_said(error)})")
    return error


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
