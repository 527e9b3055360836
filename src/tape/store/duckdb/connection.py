"""Creates and opens a DuckDB file, and translates its errors."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from tape.core.errors import Conflict, Corrupt, NotFound, TapeError, Unavailable

# The caller's thread is enough for what a run writes, and nothing is fetched from anywhere. The eight threads that
# DuckDB 2 keeps beside it for every open file would be eight for every live run.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "autoinstall_known_extensions": False}
if int(duckdb.__version__.partition(".")[0]) >= 2:
    _CONFIG["async_threads"] = 0


def open_to_write(path: Path, furnish: Callable[[duckdb.DuckDBPyConnection], None]) -> duckdb.DuckDBPyConnection:
    """Opens the file at a path; a new one appears with all its tables or not at all, even after a kill."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unborn = path.with_name(path.name + ".unborn")
        for leftover in (unborn, unborn.with_name(unborn.name + ".wal")):
            leftover.unlink(missing_ok=True)
        with closing(_connect(unborn, read_only=False)) as connection:
            furnish(connection)
        unborn.replace(path)
    return _connect(path, read_only=False)


def open_to_read(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.exists():
        raise NotFound(f"there is no cold file at {path}")
    return _connect(path, read_only=True)


@contextmanager
def translated() -> Iterator[None]:
    """Translates the errors of DuckDB."""
    try:
        yield
    except duckdb.ConstraintException as error:
        raise Conflict(f"this place in the run is taken: {_first_line(error)}") from error
    except duckdb.OperationalError as error:
        raise Unavailable(_first_line(error), "unknown") from error
    except duckdb.Error as error:
        raise Corrupt(_first_line(error)) from error


def _connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(path, read_only=read_only, config=_CONFIG)
    except duckdb.Error as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: duckdb.Error) -> TapeError:
    if isinstance(error, duckdb.ConnectionException) or "Could not set lock" in str(error):
        return Unavailable(f"{path} is open elsewhere")
    return Corrupt(f"{path} cannot be opened: {_first_line(error)}")


def _first_line(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]
