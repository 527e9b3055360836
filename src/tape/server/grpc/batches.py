"""Entries as messages, put together once for all who read them.

The journal is cut into blocks of a hundred. Whoever reads the whole of it ends each message where a block ends, so that
all come by the same blocks, wherever they began; a block is kept for the next one, within a bound in bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tape.core.event import Entry
from tape.wire.messages.entries import in_batch

BLOCK: Final = 100
BYTES: Final = 32 << 20
MOST_BYTES: Final = 1 << 20
RECENT: Final = 8


class Stretch(NamedTuple):
    """Positions in a row: after the first, through the last."""

    epoch: int
    after: int
    through: int


class Batches:
    """Messages of what many readers get together: whole blocks for long, other stretches for a moment."""

    def __init__(self, limit: int = BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._blocks: dict[Stretch, list[bytes]] = {}
        self._recent: dict[Stretch, list[bytes]] = {}

    def messages(self, entries: Sequence[Entry]) -> list[bytes]:
        """One message, or several where one would weigh too much."""
        first, last = entries[0], entries[-1]
        stretch = Stretch(first.epoch, first.global_seq - 1, last.global_seq)
        if stretch.through - stretch.after != len(entries) or first.epoch != last.epoch:
            return _joined(entries)
        found = self._recent.get(stretch) or self._blocks.get(stretch)
        if found is None:
            found = _joined(entries)
            self._keep(stretch, found)
        return found

    def block(self, epoch: int, after: int) -> list[bytes] | None:
        """The messages of the block after a position, if they are still here."""
        stretch = Stretch(epoch, after, after + BLOCK)
        found = self._blocks.pop(stretch, None)
        if found is not None:
            self._blocks[stretch] = found  # what is asked for is let go of last
        return found

    def _keep(self, stretch: Stretch, messages: list[bytes]) -> None:
        if stretch.after % BLOCK == 0 and stretch.through - stretch.after == BLOCK:
            self._keep_block(stretch, messages)
            return
        if len(self._recent) >= RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[stretch] = messages

    def _keep_block(self, stretch: Stretch, messages: list[bytes]) -> None:
        self._blocks[stretch] = messages
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
    messages, first, weight = [], 0, 0
    for place, part in enumerate(parts):
        if place > first and weight + len(part) > MOST_BYTES:
            messages.append(b"".join(parts[first:place]))
            first, weight = place, 0
        weight += len(part)
    return [*messages, b"".join(parts[first:])]
