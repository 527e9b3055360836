"""Opens a durable store, which a lake can be filled from."""

from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.settings import Settings
from tape.store.ranges import refused


def open_durable_store(url: str, settings: Settings) -> AbstractAsyncContextManager[Store]:
    """Opens the store at a URL; raises UsageError if it does not keep the whole history."""
    match urlsplit(url).scheme:
        case "sqlite":
            from tape.store.sqlite.location import Location
            from tape.store.sqlite.store import open_store as open_sqlite

            return open_sqlite(Location.parse(url, settings.unsafe_durability))
        case "postgresql" | "postgres":
            try:
                from tape.store.postgres.store import open_store as open_postgres
            except ImportError as error:
                raise UsageError("this needs the package asyncpg; install tape-bus[postgres]") from error
            return open_postgres(url, listen_url=settings.listen_url, unsafe_durability=settings.unsafe_durability)
        case scheme:
            raise refused(scheme)
