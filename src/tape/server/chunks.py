"""Frames as chunks of HTTP/1.1, an entry's made once for all who read it."""

from collections.abc import Iterable, Iterator
from typing import Final

from tape.core.event import Entry
from tape.wire import sse
from tape.wire.frames import Synthetic

SLICE: Final = 32 * 1024


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


def slices(entries: Iterable[Entry], by: sse.By) -> Iterator[list[Entry]]:
    """Entries in parts of about so many bytes that a socket can take at once."""
    part: list[Entry] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += len(encoded(entry, by))
        if size >= SLICE:
            yield part
            part, size = [], 0
    if part:
        yield part
