"""The suites of a soak: which tests, how much more work than usual, and for how long at most."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

PLAN: Final = Path(__file__)
WHOLE_MINUTES: Final = 100
ENDING_S: Final = 20.0  # for an interrupted suite, and again for what cleans up after it; then they are killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tally that share a scale and a box of time."""

    name: str
    tests: tuple[str, ...]
    scale: float
    minutes: float
    workers: int = 4

    @property
    def box_s(self) -> float:
        return self.minutes * 60


# The scales fit the boxes on a machine with two cores.
SUITES: Final = (
    Suite(name="contract", tests=("tests/contract",), scale=4, minutes=15),
    Suite(name="property", tests=("tests/property",), scale=8, minutes=8),
    Suite(name="process", tests=("tests/process",), scale=4, minutes=22),
    Suite(name="lake", tests=("tests/lake",), scale=2, minutes=15),
    Suite(name="server", tests=("tests/server",), scale=3, minutes=15),
    Suite(name="outbox", tests=("tests/outbox", "tests/bridges", "tests/store"), scale=4, minutes=6),
    Suite(name="chaos", tests=("tests/soak/seeds.py",), scale=2, minutes=8, workers=1),
    Suite(name="fuzz", tests=("tests/soak/fuzzing.py",), scale=1, minutes=5, workers=1),
)


def within(minutes: float) -> tuple[Suite, ...]:
    """The suites with boxes for a shorter soak, each with its share of it."""
    return tuple(replace(suite, minutes=suite.minutes * minutes / WHOLE_MINUTES) for suite in SUITES)
