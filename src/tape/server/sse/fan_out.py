"""Streams that keep up with one view walk together: what is new is put into frames once and written to all in a row.

A thousand streams that each look where they are cost more than their sockets do. Those who are where the tail is need
not look: they share one place. A stream whose socket is full parts, goes on by itself, and joins again when it has
caught up.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from tape.bus.stream import StreamReader
from tape.bus.tail import TailView
from tape.server.sse.chunks import joined
from tape.telemetry import Counter
from tape.wire.sse import By

BATCH: Final = 64


class Member(Protocol):
    """A stream of the group."""

    def part(self) -> None: ...
    def pump(self) -> None: ...
    def fail(self, error: Exception) -> None: ...


class FanOutGroup:
    """The streams of one view that are where the tail is; `last_id` and `written` are what all of them were sent."""

    def __init__(self, reader: StreamReader, by: By, streamed: Counter, dissolve: Callable[[], object]) -> None:
        self.reader = reader
        self.last_id = 0
        self.written = 0
        self._by = by
        self._streamed = streamed
        self._dissolve = dissolve
        self._writes: dict[Member, Callable[[bytes], object]] = {}
        self._is_walking = False
        self._tired: list[Member] = []
        reader.listen(self.walk)

    def join(self, member: Member, write: Callable[[bytes], object]) -> None:
        self._writes[member] = write

    def tire(self, member: Member) -> None:
        """Lets a member go whose socket is full; in the middle of a walk only at its end, when all have the same."""
        if self._is_walking:
            self._tired.append(member)
        else:
            member.part()

    def leave(self, member: Member) -> None:
        del self._writes[member]
        if not self._writes:
            self._dissolve()
            self.reader.close()

    def walk(self) -> None:
        """Called when there may be more to send, or an end: that, everybody meets alone."""
        try:
            while self._writes and (entries := self.reader.take(BATCH)) is not None:
                if entries:
                    self.last_id = getattr(entries[-1], self._by)
                    self._tell(joined(entries, self._by), len(entries))
        except Exception as error:  # noqa: BLE001 - what cannot be framed fails each of them
            for member in self._disbanded():
                member.fail(error)
        if self._writes and self._has_end():
            for member in self._disbanded():
                member.pump()

    def _has_end(self) -> bool:
        return self.reader.is_overtaken or self.reader.is_over or self.reader.is_journal_closed

    def _tell(self, frames: bytes, count: int) -> None:
        """An event costs each client one turn of this loop; whose socket was lost a moment ago goes alone."""
        self._is_walking = True
        for member, write in self._writes.items():
            try:
                write(frames)
            except RuntimeError:
                self._tired.append(member)
        self._is_walking = False
        self.written += len(frames)
        self._streamed.add(count * len(self._writes))
        if self._tired:
            self._let_go()

    def _let_go(self) -> None:
        """Those who tired go on alone, and are judged by how far they are behind."""
        tired, self._tired = self._tired, []
        for member in tired:
            member.part()
        for member in tired:
            member.pump()

    def _disbanded(self) -> Sequence[Member]:
        """All of them, each by itself again."""
        members = tuple(self._writes)
        for member in members:
            member.part()
        return members


class FanOutGroups:
    """The groups of one server, one for each view that somebody keeps up with."""

    def __init__(self) -> None:
        self._by_lane: dict[TailView, FanOutGroup] = {}

    def meet(self, reader: StreamReader, by: By, streamed: Counter) -> FanOutGroup | None:
        """The group that a stream can walk with, if it has caught up with it.

        It is first brought to where the tail is; when nobody is left of it then, there is a new one.
        """
        view = reader.view
        if view in self._by_lane:
            self._by_lane[view].walk()
        group = self._by_lane.get(view)
        if group is None:
            group = self._by_lane[view] = FanOutGroup(reader.clone(), by, streamed, partial(self._by_lane.pop, view))
        return group if group.reader.is_at_same_position(reader) else None
