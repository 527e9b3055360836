"""Fan-out groups: streams at the tail's end share one reader, so that new entries are framed and dispatched once.

A thousand streams that each look up their position cost more than their sockets do. Streams at the tail's end are all
at the same position and need no lookup. A stream whose socket is full leaves its group, continues by itself, and joins
again when it has caught up.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from tape.bus.stream import StreamReader
from tape.bus.tail import TailView
from tape.server.sse.chunks import entry_chunks
from tape.telemetry import Counter
from tape.wire.sse import IdField

BATCH: Final = 64


class Member(Protocol):
    """A stream in a group."""

    def leave_group(self) -> None: ...
    def pump(self) -> None: ...
    def fail(self, error: Exception) -> None: ...


class FanOutGroup:
    """The streams of one view at the tail's end; `last_id` and `written` count what all of them were sent."""

    def __init__(self, reader: StreamReader, by: IdField, streamed: Counter, on_empty: Callable[[], object]) -> None:
        self.reader = reader
        self.last_id = 0
        self.written = 0
        self._by = by
        self._streamed = streamed
        self._on_empty = on_empty
        self._writes: dict[Member, Callable[[bytes], object]] = {}
        self._is_broadcasting = False
        self._detached: list[Member] = []
        reader.listen(self.broadcast)

    def join(self, member: Member, write: Callable[[bytes], object]) -> None:
        self._writes[member] = write

    def detach(self, member: Member) -> None:
        """Removes a member whose socket is full; during a broadcast, after all members have the same entries."""
        if self._is_broadcasting:
            self._detached.append(member)
        else:
            member.leave_group()

    def leave(self, member: Member) -> None:
        del self._writes[member]
        if not self._writes:
            self._on_empty()
            self.reader.close()

    def broadcast(self) -> None:
        """Sends new entries to all members; at an end, dissolves the group so that each member handles it."""
        reader = self.reader
        try:
            while self._writes and (entries := reader.take(BATCH)) is not None:
                if entries:
                    self.last_id = getattr(entries[-1], self._by)
                    self._write(entry_chunks(entries, self._by), len(entries))
        except Exception as error:  # noqa: BLE001 - an entry that cannot be framed fails every member
            for member in self._dissolved():
                member.fail(error)
        if self._writes and (reader.is_overtaken or reader.is_over or reader.view.is_journal_closed):
            for member in self._dissolved():
                member.pump()

    def _write(self, frames: bytes, count: int) -> None:
        """One iteration of this loop is all that an event costs per client; a socket just lost detaches its member."""
        self._is_broadcasting = True
        for member, write in self._writes.items():
            try:
                write(frames)
            except RuntimeError:
                self._detached.append(member)
        self._is_broadcasting = False
        self.written += len(frames)
        self._streamed.add(count * len(self._writes))
        if self._detached:
            self._release_detached()

    def _release_detached(self) -> None:
        """Detached members continue by themselves, and each is judged by its own lag."""
        detached, self._detached = self._detached, []
        for member in detached:
            member.leave_group()
        for member in detached:
            member.pump()

    def _dissolved(self) -> Sequence[Member]:
        """All members, after each has left."""
        members = tuple(self._writes)
        for member in members:
            member.leave_group()
        return members


class FanOutGroups:
    """The groups of one server, at most one for each view."""

    def __init__(self) -> None:
        self._by_view: dict[TailView, FanOutGroup] = {}

    def find(self, reader: StreamReader, by: IdField, streamed: Counter) -> FanOutGroup | None:
        """The group of a reader's view, if both are at the same position.

        The group first sends what the tail has; if all its members leave meanwhile, a new group replaces it.
        """
        view = reader.view
        if view in self._by_view:
            self._by_view[view].broadcast()
        group = self._by_view.get(view)
        if group is None:
            group = self._by_view[view] = FanOutGroup(reader.clone(), by, streamed, partial(self._by_view.pop, view))
        return group if group.reader.is_at_same_position(reader) else None
