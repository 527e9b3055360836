"""The report of a run of chaos: what happened, what was judged, and what was wrong."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tape.checker.check import JUDGES
from tape.checker.invariant_result import InvariantResult
from tests.chaos.plan import Plan

EXPECTED = ("kill server", "kill worker", "cut", "stall", "unknown outcomes", "attempts again", "evictions")
JUDGED = ("P1", "P2", "P3", "P4", "P5", "P6", "P10", "P11", "P12", "P14")
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
        expected = [*EXPECTED, *(["new terms"] if self.plan.promotion != "none" else [])]
        expected += ["resyncs"] if self.plan.promotion == "lagging" else []
        idle = [f"nothing to judge for {each}" for each in JUDGED if not self.findings[each].judged]
        may_be_idle = {"P11"} if self.plan.promotion == "lagging" else set()
        return [f"no {what}" for what in expected if not self.done[what]] + [
            each for each in idle if each.split()[-1] not in may_be_idle
        ]

    def _growth(self) -> Iterator[str]:
        if self.entries > self.asked:
            yield f"{self.asked} events were asked for and {self.entries} are in the journal"
        if self.sessions > MOST_SESSIONS:
            yield f"{self.sessions} sessions are open at the database"
        for name, (memory, descriptors) in self.after.items():
            memory_before, descriptors_before = self.before[name]
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
