"""The main part of the demo: readers first, then producers, then what every reader got."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final

import anyio

from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.cli.demo.agents import AgentWork, produce, produce_elsewhere
from tape.cli.demo.readers import DemoReader, Reconnector, SlowReader, TailReader, Wants, payload_field
from tape.cli.demo.report import Report
from tape.cli.demo.tail_columns import TailColumns
from tape.core.event import Entry

HERE: Final = ("ada", "bob")
ELSEWHERE: Final = ("cleo", "dan")
PATTERN: Final = "/trips/*/tool/**"
DEAR: Final = 0.02
PREDICATE: Final = f"payload.cost > {DEAR}"
LAST_S: Final = 1.0  # time for the batches and the comparison at the end
DEADLINE_S: Final = 20.0


class StreamDemo:
    """One demo over one journal, from a position on."""

    def __init__(self, journal: Journal, url: str, start: int, *, is_quiet: bool) -> None:
        self._journal = journal
        self._url = url
        self._start = start
        self.prefix = f"{start}-" if start else ""  # other runs than last time, if the journal is not new
        streams = self._streams(f"{self.prefix}{HERE[0]}.1")
        self._columns_of_tails = TailColumns(list(streams), is_quiet=is_quiet)
        self._tails = [
            (TailReader(title, wants, partial(self._columns_of_tails.show, column)), stream)
            for column, (title, (stream, wants)) in enumerate(streams.items())
        ]
        self._slow = SlowReader("slow reader", self._columns_of_tails.remark)
        self._again = Reconnector("reconnecting reader", self._columns_of_tails.remark)

    async def run(self, seconds: float) -> Report:
        self._columns_of_tails.begin(
            f"One journal, 4 producers in 3 processes, {len(self._readers)} readers: {self._url}"
        )
        began = time.monotonic()
        async with anyio.create_task_group() as reading:
            for tail, stream in self._tails:
                reading.start_soon(tail.read, stream)
            reading.start_soon(self._slow.read, self._journal, self._start)
            reading.start_soon(self._again.read, self._journal, self._start)
            acks = await self._produce(time.monotonic_ns() + int((seconds - LAST_S) * 1e9))
            took_s = time.monotonic() - began
            entries = [entry async for entry in self._journal.stream(from_global_seq=self._start, follow=False)]
            self._slow.hurry.set()
            await self._until_all_have_read(entries)
            reading.cancel_scope.cancel()
        return self._report(took_s, acks, entries)

    def _streams(self, run_id: str) -> Mapping[str, tuple[Stream, Wants]]:
        """The selections of the tails, and the same in plain Python."""
        stream = partial(self._journal.stream, from_global_seq=self._start)
        streams: dict[str, tuple[Stream, Wants]] = {
            f"run {run_id}": (self._journal.stream(run_id=run_id), lambda entry: entry.run_id == run_id),
            PATTERN: (stream(subject=PATTERN), lambda entry: "/tool/" in entry.subject),
        }
        if find_spec("cel_expr_python"):
            streams[PREDICATE] = (stream(where=PREDICATE), _is_dear)
        return streams

    async def _produce(self, until_ns: int) -> Sequence[int]:
        """Runs all producers, here and in other processes; returns how long each append took."""
        acks: list[int] = []

        async def note(work: Callable[[], Awaitable[Sequence[int]]]) -> None:
            acks.extend(await work())

        async with anyio.create_task_group() as producing:
            for name in HERE:
                producing.start_soon(note, partial(produce, self._journal, self._work(name, until_ns)))
            for name in ELSEWHERE:
                producing.start_soon(note, partial(produce_elsewhere, self._work(name, until_ns)))
        return acks

    def _work(self, name: str, until_ns: int) -> AgentWork:
        return AgentWork(url=self._url, name=name, prefix=self.prefix, until_ns=until_ns)

    @property
    def _readers(self) -> list[DemoReader]:
        return [*(tail for tail, _ in self._tails), self._slow, self._again]

    async def _until_all_have_read(self, entries: Sequence[Entry]) -> None:
        with anyio.move_on_after(DEADLINE_S):
            for reader in self._readers:
                await reader.reach(max((entry.global_seq for entry in entries if reader.wants(entry)), default=0))

    def _report(self, took_s: float, acks: Sequence[int], entries: Sequence[Entry]) -> Report:
        own = {f"{self.prefix}{name}" for name in HERE}
        delays = [(run_id.rpartition(".")[0] in own, delay) for tail, _ in self._tails for run_id, delay in tail.delays]
        return Report(
            seconds=took_s,
            times_ms=[entry.ts_ms for entry in entries],
            acks=acks,
            same_process=[delay for is_own, delay in delays if is_own],
            other_process=[delay for is_own, delay in delays if not is_own],
            checks=[reader.check(entries) for reader in self._readers],
        )


def _is_dear(entry: Entry) -> bool:
    cost = payload_field(entry, "cost")
    return isinstance(cost, float) and cost > DEAR
