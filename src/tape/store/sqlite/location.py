"""The place and the durability of a SQLite journal: `sqlite:///file`, `memory://`."""

import os
import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from tape.core.errors import UsageError, quoted

KEEP_IN_MEMORY: Final = 10_000
BUSY_S: Final = 10.0
_LEVELS: Final = ("extra", "full", "normal", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A file, or none for memory; less than synchronous=FULL needs unsafe_durability as well."""

    path: Path | None
    synchronous: str = "full"
    keep_per_run: int | None = None

    @classmethod
    def parse(cls, url: str, unsafe_durability: bool = False) -> "Location":
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.scheme == "memory" and not (parts.netloc or parts.path or parts.fragment):
            return cls._in_memory(url, options)
        path = unquote(parts.path[1:])
        if parts.scheme != "sqlite" or parts.netloc or parts.fragment or not path.strip("/") or "\0" in path:
            raise UsageError(f"a SQLite store is sqlite:///relative.db or sqlite:////absolute.db, not {quoted(url)}")
        level = options.pop("synchronous", "full").lower()
        _refuse_options(url, options)
        _check_level(level, unsafe_durability)
        return cls(path=Path(path).absolute(), synchronous=level)

    @classmethod
    def _in_memory(cls, url: str, options: dict[str, str]) -> "Location":
        keep = options.pop("keep", str(KEEP_IN_MEMORY))
        _refuse_options(url, options)
        if not keep.isdecimal() or not 1 <= int(keep) <= 1_000_000:
            raise UsageError(f"keep must be 1 to 1,000,000 entries a run, not {keep!r}")
        return cls(path=None, synchronous="off", keep_per_run=int(keep))

    def keeping(self, keep_per_run: int | None) -> "Location":
        """The same location with this many entries for each run, if it is bounded."""
        return self if keep_per_run is None or self.path is not None else replace(self, keep_per_run=keep_per_run)

    def prepare(self) -> None:
        """Creates the file, readable by its owner only, whatever the umask.

        An existing file is not opened: closing it again would release every lock that this process has on it.
        """
        if self.path is None:
            return
        self.refuse_folder()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.path.exists():
                with suppress(FileExistsError):
                    os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise UsageError(f"cannot open {str(self.path)!r}: {error.strerror}") from error

    def refuse_folder(self) -> None:
        if self.path is not None and self.path.is_dir():
            raise UsageError(f"{str(self.path)!r} is a folder, not a file")

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            str(self.path or ":memory:"), BUSY_S, isolation_level=None, cached_statements=256,
            check_same_thread=self.path is not None,
        )  # fmt: skip
        if self.path is not None:
            _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Retries a locked file: SQLite does not wait when two processes create it at once."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


def _check_level(level: str, unsafe_durability: bool) -> None:
    if level not in _LEVELS:
        raise UsageError(f"synchronous must be one of {', '.join(_LEVELS)}, not {level!r}")
    if level in ("normal", "off") and not unsafe_durability:
        raise UsageError(
            f"synchronous={level} loses acknowledged events when the machine stops; "
            "use synchronous=full, or say --unsafe-durability"
        )


def _refuse_options(url: str, options: dict[str, str]) -> None:
    if options:
        raise UsageError(f"unknown option {', '.join(sorted(options))} in {quoted(url)}")
