"""How much of SQLite's write-ahead log survives a power cut.

See https://www.sqlite.org/fileformat2.html#walformat and https://www.sqlite.org/walformat.html.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import NamedTuple

HEADER = 32
FRAME_HEADER = 24
BACKFILL_ATTEMPTED = 128  # offset in the -shm file of the number of frames a checkpoint has begun to copy


class Frame(NamedTuple):
    """A page in the log; `is_commit` marks the last of a transaction."""

    end: int
    is_commit: bool


def frames(log: bytes) -> Iterator[Frame]:
    """The frames since the log was last reset; older frames have other salts."""
    if len(log) < HEADER:
        return
    (page_size,) = unpack_from(">I", log, 8)
    size = FRAME_HEADER + page_size
    for start in range(HEADER, len(log) - size + 1, size):
        _, pages, *salts = unpack_from(">4I", log, start)
        if salts != list(unpack_from(">2I", log, 16)):
            return
        yield Frame(start + size, pages > 0)


def durable(journal: Path, is_answered: bool) -> int:
    """The synced bytes of the log when at most one request was in flight.

    An acknowledged commit is synced. An unacknowledged one may be, and is if a checkpoint has begun to copy it.
    """
    found = list(frames(sibling(journal, "-wal").read_bytes()))
    commits = [0, *(number for number, frame in enumerate(found, 1) if frame.is_commit)]
    answered = commits[-1] if is_answered else commits[-2] if len(commits) > 1 else 0
    (copied,) = unpack_from("=I", sibling(journal, "-shm").read_bytes(), BACKFILL_ATTEMPTED)
    certain = max(answered, min(copied, len(found)))
    return found[certain - 1].end if certain else HEADER


def sibling(journal: Path, suffix: str) -> Path:
    return journal.with_name(journal.name + suffix)
