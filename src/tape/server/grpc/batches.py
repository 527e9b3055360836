"""Entries as messages, encoded once for all readers.

The journal is cut into blocks of a hundred. A reader of all of it ends each message where a block ends, so that all
readers use the same blocks, wherever they began. Blocks are cached up to a number of bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tape.core.event import Entry
from tape.wire.messages.entries import in_batch

BLOCK: Final = 100
BYTES: Final = 32 << 20
MOST_BYTES: Final = 1 << 20
RECENT: Final = 8


class Span(NamedTuple):
    """Consecutive positions: after one, through another."""

    epoch: int
    after: int
    through: int


class Batches:
    """Messages that many readers share: a cache of whole blocks, and of the last few other spans."""

    def __init__(self, limit: int = BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._blocks: dict[Span, list[bytes]] = {}
        self._recent: dict[Span, list[bytes]] = {}

    def messages(self, entries: Sequence[Entry]) -> list[bytes]:
        """One message, or several where one would be too large."""
        first, last = entries[0], entries[-1]
        span = Span(first.epoch, first.global_seq - 1, last.global_seq)
        if span.through - span.after != len(entries) or first.epoch != last.epoch:
            return _joined(entries)
        found = self._recent.get(span) or self._blocks.get(span)
        if found is None:
            found = _joined(entries)
            self._keep(span, found)
        return found

    def block(self, epoch: int, after: int) -> list[bytes] | None:
        """The messages of the block after a position, if they are cached."""
        span = Span(epoch, after, after + BLOCK)
        found = self._blocks.pop(span, None)
        if found is not None:
            self._blocks[span] = found  # the least recently used block is dropped first
        return found

    def _keep(self, span: Span, messages: list[bytes]) -> None:
        if span.after % BLOCK == 0 and span.through - span.after == BLOCK:
            self._keep_block(span, messages)
            return
        if len(self._recent) >= RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[span] = messages

    def _keep_block(self, span: Span, messages: list[bytes]) -> None:
        self._blocks[span] = messages
        self._bytes += sum(map(len, messages))
        while self._bytes > self._limit:
            oldest = next(iter(self._blocks))
            self._bytes -= sum(map(len, self._blocks.pop(oldest)))


def in_blocks(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Entries of the whole journal, cut where a block ends."""
    first = 0
    while first < len(entries):
        last = first + BLOCK - (entries[first].global_seq - 1) % BLOCK
        yield entries[first:last]
        first = last


def _joined(entries: Sequence[Entry]) -> list[bytes]:
    parts = list(map(in_batch, entries))
    if sum(map(len, parts)) <= MOST_BYTES:
        return [b"".join(parts)]
    messages, first, size = [], 0, 0
    for place, part in enumerate(parts):
        if place > first and size + len(part) > MOST_BYTES:
            messages.append(b"".join(parts[first:place]))
            first, size = place, 0
        size += len(part)
    return [*messages, b"".join(parts[first:])]
