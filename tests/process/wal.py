"""What SQLite has on disk for certain: how much of a write-ahead log a power cut cannot take back.

See https://www.sqlite.org/fileformat2.html#walformat and https://www.sqlite.org/walformat.html.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import NamedTuple

HEADER = 32
FRAME_HEADER = 24
BACKFILL_ATTEMPTED = 128  # where the shared-memory file says how many frames a checkpoint has begun to copy


class Frame(NamedTuple):
    """A page in the log; the last one of a transaction says so."""

    end: int
    is_commit: bool


def frames(log: bytes) -> Iterator[Frame]:
    """The frames of the log's present life; what an earlier one left behind has other salts."""
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
    """The bytes of the log that were synced, when at most one request was under way.

    An answered commit was synced before its answer. One that is not may have been, and was if a checkpoint has begun
    to copy it.
    """
    found = list(frames(beside(journal, "-wal").read_bytes()))
    commits = [0, *(number for number, frame in enumerate(found, 1) if frame.is_commit)]
    answered = commits[-1] if is_answered else commits[-2] if len(commits) > 1 else 0
    (copied,) = unpack_from("=I", beside(journal, "-shm").read_bytes(), BACKFILL_ATTEMPTED)
    certain = max(answered, min(copied, len(found)))
    return found[certain - 1].end if certain else HEADER


def beside(journal: Path, suffix: str) -> Path:
    return journal.with_name(journal.name + suffix)
