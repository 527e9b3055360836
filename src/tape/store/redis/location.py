"""The server, prefix and limit of a Redis journal: `redis://host:6379/0?prefix=tape&keep=10000`."""

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tape.core.errors import UsageError, quoted
from tape.core.ids import ID_IN_WORDS, is_id

KEEP: Final = 10_000
MOST: Final = 1_000_000
PREFIX: Final = "tape"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A server and a prefix on it; errors never quote the URL, which may hold a password."""

    url: str
    root: str = f"{{{PREFIX}}}"
    keep_per_run: int = KEEP

    @classmethod
    def parse(cls, url: str) -> "Location":
        parts = urlsplit(url)
        if parts.scheme not in ("redis", "rediss") or not parts.hostname or not _is_place(url, parts.path):
            raise UsageError("a Redis store is redis://host:port/database or rediss://…")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        prefix, keep = options.pop("prefix", PREFIX), options.pop("keep", str(KEEP))
        if options:
            raise UsageError(f"unknown option {', '.join(sorted(options))} in a redis:// URL")
        if not is_id(prefix):
            raise UsageError(f"prefix must be {ID_IN_WORDS}, not {quoted(prefix)}")
        if not keep.isdecimal() or not 1 <= int(keep) <= MOST:
            raise UsageError(f"keep must be 1 to {MOST:,} entries a run, not {quoted(keep)}")
        return cls(url=urlunsplit(parts._replace(query="")), root=f"{{{prefix}}}", keep_per_run=int(keep))

    def keeping(self, keep_per_run: int | None) -> "Location":
        """The same location with this many entries for each run."""
        return self if keep_per_run is None else replace(self, keep_per_run=keep_per_run)


def _is_place(url: str, database: str) -> bool:
    """Whether port and database are numbers."""
    try:
        return urlsplit(url).port != 0 and int(database.strip("/") or 0) >= 0
    except ValueError:
        return False
