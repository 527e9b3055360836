"""Frames as HTTP/1.1 chunks; the frame of an entry is encoded once for all readers."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from tape.core.event import Entry
from tape.wire import sse
from tape.wire.frames import Synthetic
from tape.wire.sse import IdField

SLICE: Final = 32 * 1024
KEPT: Final = 32 * 1024


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def synthetic_chunk(frame: Synthetic) -> bytes:
    return chunk(sse.synthetic(frame))


def entry_chunk(entry: Entry, by: IdField) -> bytes:
    """An entry's frame as a chunk, cached on the entry."""
    found = entry.memo.get(by)
    if found is None:
        found = entry.memo[by] = chunk(sse.frame(entry, by=by))
    return found


def entry_chunks(entries: Sequence[Entry], by: IdField) -> bytes:
    if len(entries) == 1:
        return entry_chunk(entries[0], by)
    return b"".join([entry_chunk(entry, by) for entry in entries])


def take_slice(entries: deque[Entry], by: IdField) -> list[Entry]:
    """Removes from the front about as much as a socket accepts at once."""
    part: list[Entry] = []
    size = 0
    while entries and size < SLICE:
        part.append(entries.popleft())
        size += len(entry_chunk(part[-1], by))
    return part


def shorten(entries: deque[Entry]) -> bool:
    """Drops from the end what a slow reader need not hold in memory; whether there was nothing to drop."""
    size = sum(entry.weight for entry in entries)
    is_short = size <= KEPT
    while size > KEPT and len(entries) > 1:
        size -= entries.pop().weight
    return is_short
