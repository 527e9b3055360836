"""The report of a run of chaos: what happened, what was judged, and what was wrong."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tape.checker.check import JUDGES
from tape.checker.invariant_result import InvariantResult
from tests.chaos.plan import Plan

EXPECTED = (
    "kill server", "kill worker", "cut", "stall", "unknown outcomes", "lease expiries", "evictions", "poll fallbacks",
    "requests without room",
)  # fmt: skip
OF_LAKE = ("kill lake", "lake steps without room")
JUDGED = ("P1", "P2", "P3", "P4", "P5", "P6", "P10", "P11", "P12", "P14", "P17")
FEW_ROWS = 100  # of tables that do not grow with what is asked for
MORE_MEMORY = 128 << 20
MORE_DESCRIPTORS = 64
MOST_SESSIONS = 80


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run showed."""

    seed: int
    plan: Plan
    done: Counter[str]
    stuck: Sequence[str]
    findings: Mapping[str, InvariantResult]
    lines: int
    asked: int
    published: int
    entries: int
    rows: Mapping[str, int]
    before: Mapping[str, tuple[int, int]]
    after: Mapping[str, tuple[int, int]]
    sessions: int

    @property
    def wrong(self) -> list[str]:
        """Everything that must not be; empty for a good run."""
        anomalies = [f"{each.invariant}: {each.sentence}" for one in self.findings.values() for each in one.anomalies]
        return [*self.stuck, *anomalies, *self._growth()]

    @property
    def weak(self) -> list[str]:
        """What a run should have had and did not."""
        missing = [what for what in self._expected() if not self.done[what]]
        idle = [each for each in sorted(self._judged()) if not self.findings[each].judged]
        return [*(f"no {what}" for what in missing), *(f"nothing to judge for {each}" for each in idle)]

    def _expected(self) -> Iterator[str]:
        yield from EXPECTED
        yield from OF_LAKE if self.plan.has_lake else ()
        yield from ["new terms"] if self.plan.promotion != "none" else []
        yield from ["resyncs"] if self.plan.promotion == "lagging" else []

    def _judged(self) -> set[str]:
        without = {"P11"} if self.plan.promotion == "lagging" else set()  # it may give attempts again that it lost
        return {*JUDGED} - without - (set() if self.plan.has_lake else {"P17"})

    def _growth(self) -> Iterator[str]:
        if self.entries > self.asked:
            yield f"{self.asked} events were asked for and {self.entries} are in the journal"
        if self.sessions > MOST_SESSIONS:
            yield f"{self.sessions} sessions are open at the database"
        for table, count in self.rows.items():
            if count > self._most_rows(table):
                yield f"{table} has {count} rows for {self.asked} events and {self.published} of the outbox"
        for name in self.after:
            yield from self._more_use(name)

    def _most_rows(self, table: str) -> int:
        """A row for each event; in the outbox one for each event and handler, twice with the handlers' own records."""
        return FEW_ROWS + (4 * self.published if table.startswith("core.") else self.asked)

    def _more_use(self, name: str) -> Iterator[str]:
        (memory_before, descriptors_before), (memory, descriptors) = self.before[name], self.after[name]
        if memory > memory_before + MORE_MEMORY:
            yield f"{name} has grown from {memory_before >> 20} to {memory >> 20} MiB"
        if descriptors > descriptors_before + MORE_DESCRIPTORS:
            yield f"{name} had {descriptors_before} open descriptors and has {descriptors}"

    def __str__(self) -> str:
        done = ", ".join(f"{what} {times}" for what, times in sorted(self.done.items()) if times)
        judged = ", ".join(f"{each} {self.findings[each].judged}" for each in JUDGES if self.findings[each].judged)
        rows = ", ".join(f"{table} {count}" for table, count in self.rows.items() if count)
        usage = ", ".join(
            f"{name} {self.before[name][0] >> 20}→{memory >> 20} MiB {self.before[name][1]}→{descriptors} descriptors"
            for name, (memory, descriptors) in self.after.items()
        )
        return "\n".join(
            [
                f"seed {self.seed}, promotion: {self.plan.promotion}",
                f"happened: {done}",
                f"asked for {self.asked} events, {self.entries} are in the journal; a history of {self.lines} lines",
                f"judged: {judged}",
                f"rows: {rows}",
                f"use: {usage}; {self.sessions} sessions at the database",
                *(f"WEAK: {each}" for each in self.weak),
                *(f"WRONG: {each}" for each in self.wrong[:40]),
                "no anomaly" if not self.wrong else f"{len(self.wrong)} things are wrong",
            ]
        )
