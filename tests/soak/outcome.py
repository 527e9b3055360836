"""How a suite of a soak ended: read from its record, kept in the state, shown in the report."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tests.soak.recording import Begun, Clocked, Collected, Line, Phase

End: TypeAlias = Literal["complete", "clock", "broken"]

_DECODER = msgspec.json.Decoder(Line)


class Peak(msgspec.Struct, frozen=True):
    """The most that a suite used at a time."""

    processes: int = 0
    largest_mib: int = 0
    largest: str = ""
    used_mib: int = 0
    descriptors: int = 0


class Tally(msgspec.Struct, frozen=True):
    """The tests of a suite so far."""

    collected: int
    passed: int
    failed: Mapping[str, str]
    skipped: int
    unfinished: tuple[str, ...]
    slowest: tuple[str, float]
    figures: Mapping[str, int]
    notes: tuple[str, ...]
    is_clocked: bool

    @property
    def ended(self) -> int:
        return self.passed + len(self.failed) + self.skipped


class Outcome(msgspec.Struct, frozen=True):
    """A suite that has ended."""

    sources: str
    began: str
    scale: float
    box_s: float
    seconds: float
    end: End
    reason: str
    tests: Tally
    peak: Peak
    left_behind: tuple[str, ...]
    conditions: Mapping[str, str]

    @property
    def is_green(self) -> bool:
        """Whether every test ran, none failed, and no process was left behind."""
        return self.end == "complete" and not (self.tests.failed or self.tests.unfinished or self.left_behind)

    @property
    def sentence(self) -> str:
        ended, collected = self.tests.ended, self.tests.collected
        match self.end:
            case "clock":
                return f"{ended} of {collected} tests, ended by the clock"
            case "broken":
                return f"{ended} of {collected} tests, {self.reason}"
            case "complete":
                return f"all {collected} tests"


def read_tests(path: Path) -> Tally:
    """The tests of a record; a half line at its end is one of a process that was killed."""
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return summary([_DECODER.decode(line) for line in whole.splitlines()])


def summary(lines: Sequence[Line]) -> Tally:
    phases = defaultdict[str, list[Phase]](list)
    for line in lines:
        if isinstance(line, Phase):
            phases[line.test].append(line)
    failed = {test: phase.message for test, some in phases.items() for phase in some if phase.outcome == "failed"}
    ended = {test for test, some in phases.items() if some[-1].when == "teardown"} - failed.keys()
    skipped = {test for test in ended if any(phase.outcome == "skipped" for phase in phases[test])}
    seconds = {test: sum(phase.seconds for phase in some) for test, some in phases.items()}
    begun = [line.test for line in lines if isinstance(line, Begun)]
    return Tally(
        collected=max((line.tests for line in lines if isinstance(line, Collected)), default=0),
        passed=len(ended - skipped),
        failed=failed,
        skipped=len(skipped),
        unfinished=tuple(test for test in begun if test not in ended and test not in failed),
        slowest=max(seconds.items(), key=lambda item: item[1], default=("", 0.0)),
        figures=_sum(line.figures for line in lines if isinstance(line, Phase)),
        notes=tuple(note for line in lines if isinstance(line, Phase) for note in line.notes),
        is_clocked=any(isinstance(line, Clocked) for line in lines),
    )


def _sum(figures: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for each in figures:
        total.update(each)
    return dict(sorted(total.items()))
