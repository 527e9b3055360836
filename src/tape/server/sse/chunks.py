"""Frames as chunks of HTTP/1.1, an entry's made once for all who read it."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from tape.core.event import Entry
from tape.wire import sse
from tape.wire.frames import Synthetic

SLICE: Final = 32 * 1024
KEPT: Final = 32 * 1024


def chunk(data: bytes) -> bytes:
    """Data as a chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def said(word: Synthetic) -> bytes:
    """A word about the stream, as a chunk."""
    return chunk(sse.synthetic(word))


def encoded(entry: Entry, by: sse.By) -> bytes:
    """An entry's frame as a chunk, made once for all who read it."""
    found = entry.memo.get(by)
    if found is None:
        found = entry.memo[by] = chunk(sse.frame(entry, by=by))
    return found


def joined(entries: Sequence[Entry], by: sse.By) -> bytes:
    """The frames of entries that follow each other."""
    return encoded(entries[0], by) if len(entries) == 1 else b"".join([encoded(entry, by) for entry in entries])


def first_slice(entries: deque[Entry], by: sse.By) -> list[Entry]:
    """Takes about as much from the beginning as a socket can take at once."""
    part: list[Entry] = []
    size = 0
    while entries and size < SLICE:
        part.append(entries.popleft())
        size += len(encoded(part[-1], by))
    return part


def shorten(entries: deque[Entry]) -> bool:
    """Lets go of what a slow reader need not have waiting in memory; whether there was nothing to let go."""
    size = sum(entry.weight for entry in entries)
    is_short = size <= KEPT
    while size > KEPT and len(entries) > 1:
        size -= entries.pop().weight
    return is_short
