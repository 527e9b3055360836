"""Opens the database of an outbox by its URL."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import Any, NoReturn, Protocol
from urllib.parse import urlsplit

from tape.core.errors import UsageError, quoted
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.table import OutboxTable


class OutboxWakes(Protocol):
    """Calls back when the outbox may have new rows; a lost call costs latency, never an event."""

    @property
    def is_listening(self) -> bool: ...
    def run(self, on_change: Callable[[], None]) -> Coroutine[Any, Any, NoReturn]: ...


class WakingOutboxDatabase(OutboxDatabase, Protocol):
    """The database of an outbox, and the wake-ups of its listeners."""

    def wake(self, channels: tuple[str, ...]) -> OutboxWakes: ...


def open_outbox(
    url: str, *, schema: str = "core", listen_url: str | None = None, connections: int = 12
) -> AbstractAsyncContextManager[WakingOutboxDatabase]:
    if _is_sqlite(url):
        from tape.store.sqlite.outbox import open_outbox as open_sqlite

        return open_sqlite(url, schema=schema)
    from tape.store.postgres.outbox import open_outbox as open_postgres

    return open_postgres(url, schema=schema, listen_url=listen_url, connections=connections)


@asynccontextmanager
async def open_table(url: str, schema: str = "core") -> AsyncIterator[OutboxTable]:
    """The table of an outbox for an operator; uses at most two connections."""
    async with open_outbox(url, schema=schema, connections=2) as database:
        yield OutboxTable(database)


def may_have_outbox(url: str, schema: str = "core") -> bool:
    """Whether an outbox may be opened: a file without one would be changed by that, and a missing one is an error."""
    if not _is_sqlite(url):
        return True
    from tape.store.sqlite.location import Location
    from tape.store.sqlite.outbox import has_outbox

    location = Location.parse(url, unsafe_durability=True)
    path = location.path
    if path is None:
        return True
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}; see --store and TAPE_OUTBOX_URL, or run tape outbox migrate")
    location.refuse_folder()
    return has_outbox(path, schema)


async def migrate(url: str, *, schema: str = "core") -> tuple[str, ...]:
    """Applies the missing migrations of an outbox and returns their names."""
    if _is_sqlite(url):
        from tape.store.sqlite.outbox import migrate_outbox as migrate_sqlite

        return await migrate_sqlite(url, schema)
    from tape.store.postgres.outbox import migrate_outbox as migrate_postgres

    return await migrate_postgres(url, schema)


def _is_sqlite(url: str) -> bool:
    scheme = urlsplit(url).scheme
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise UsageError(f"an outbox lives in postgresql://… or sqlite:///file.db, not {quoted(scheme or url)}")
    if scheme != "sqlite" and find_spec("asyncpg") is None:
        raise UsageError("this needs the package asyncpg; install tape-bus[postgres]")
    return scheme == "sqlite"
