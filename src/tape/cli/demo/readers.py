"""The readers of the demo; each keeps the entries it received, for comparison with the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

import anyio

from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.cli.demo.report import Check, compare
from tape.core.event import Entry
from tape.core.ids import GlobalSeq

SLOW_S: Final = 0.003
CONNECTED_S: Final = 0.9
WORTH_A_WORD: Final = 2_000

Wants: TypeAlias = Callable[[Entry], bool]


class DemoReader:
    """A reader; `wants` is its selection in plain Python."""

    def __init__(self, name: str, wants: Wants = lambda entry: True) -> None:
        self.name = name
        self.wants = wants
        self.remark = ""
        self.positions: list[GlobalSeq] = []
        self._target = 0
        self._arrived = anyio.Event()

    def take(self, entry: Entry) -> None:
        self.positions.append(entry.global_seq)
        if 0 < self._target <= entry.global_seq:
            self._arrived.set()

    async def reach(self, position: int) -> None:
        """Waits until it has read up to a position."""
        self._target = position
        if (self.positions[-1] if self.positions else 0) < position:
            await self._arrived.wait()

    def check(self, entries: Sequence[Entry]) -> Check:
        """Compares the entries it received with those it should have received."""
        expected = [entry.global_seq for entry in entries if self.wants(entry)]
        return compare(self.name, self.positions, expected, self.remark)


class TailReader(DemoReader):
    """Shows what it reads, and records the delay after publishing."""

    def __init__(self, name: str, wants: Wants, show: Callable[[Entry], None]) -> None:
        super().__init__(name, wants)
        self.delays: list[tuple[str, int]] = []
        self._show = show

    async def read(self, stream: Stream) -> None:
        async with aclosing(stream):
            async for entry in stream:
                self.take(entry)
                sent_ns = payload_field(entry, "sent_ns")
                if isinstance(sent_ns, int):
                    self.delays.append((entry.run_id, time.monotonic_ns() - sent_ns))
                self._show(entry)
        self.remark = "ended with its run"


class SlowReader(DemoReader):
    """Sleeps after every entry until `hurry` is set; other readers do not wait for it."""

    def __init__(self, name: str, on_remark: Callable[[str], None]) -> None:
        super().__init__(name)
        self.hurry = anyio.Event()
        self._on_remark = on_remark
        self._furthest = 0

    async def read(self, journal: Journal, start: int) -> None:
        async with aclosing(journal.stream(from_global_seq=start)) as stream:
            async for entry in stream:
                self.take(entry)
                if len(self.positions) % 50 == 0:
                    self._note(await journal.head() - entry.global_seq)
                if not self.hurry.is_set():
                    await anyio.sleep(SLOW_S)

    def _note(self, behind: int) -> None:
        if behind > self._furthest + WORTH_A_WORD:
            self._on_remark(f"the slow reader is {behind:,} behind; nobody waits for it")
        self._furthest = max(self._furthest, behind)
        self.remark = f"up to {self._furthest:,} behind"


class Reconnector(DemoReader):
    """Disconnects repeatedly and resumes at its last position."""

    def __init__(self, name: str, on_remark: Callable[[str], None]) -> None:
        super().__init__(name)
        self._on_remark = on_remark
        self._connections = 0

    async def read(self, journal: Journal, start: int) -> None:
        while True:
            cursor = self.positions[-1] if self.positions else start
            self._connections += 1
            self.remark = f"over {self._connections} connections"
            if self._connections > 1:
                self._on_remark(f"a reader went away and is back, after {cursor:,}")
            with anyio.move_on_after(CONNECTED_S):
                await self._read_from(journal, cursor)

    async def _read_from(self, journal: Journal, cursor: int) -> None:
        async with aclosing(journal.stream(from_global_seq=cursor)) as stream:
            async for entry in stream:
                self.take(entry)


def payload_field(entry: Entry, name: str) -> object:
    return entry.payload.get(name) if isinstance(entry.payload, Mapping) else None
