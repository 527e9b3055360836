"""The page of a soak: what ran, for how long, with which figures, on which machine, and what it found."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.soak.outcome import Outcome
from tests.soak.suites import WHOLE_MINUTES, Suite

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "soak.md"
INTRODUCTION: Final = """# Soak

`make soak` runs suites of tests with more work than usual, and on the disk: the scale multiplies their rounds, kills,
entries and generated examples. Each suite has a box of time, and all boxes together are at most {minutes} minutes. The
scales are chosen for a machine with two cores. The clock ends a suite at the end of its box; such a suite is not green.

`make soak` writes this page while it runs. After an interruption the next one begins with the first suite that has not
run with these sources. `make soak ONLY=process` runs a suite again. Logs and records are in `build/soak`. [How Tape is
tested](how-tested.md) says what the suites prove."""


def page(suites: Sequence[Suite], outcomes: Mapping[str, Outcome], running: Suite | None = None) -> Iterator[str]:
    yield INTRODUCTION.format(minutes=WHOLE_MINUTES)
    yield from _results(suites, outcomes, running)
    if outcomes:
        yield from _found(outcomes)
        yield from _figures(outcomes)
        yield from _use(outcomes)
        yield from _conditions(outcomes)


def _results(suites: Sequence[Suite], outcomes: Mapping[str, Outcome], running: Suite | None) -> Iterator[str]:
    yield from ("", "## Results", "", _total(suites, outcomes), "")
    yield "| suite | tests | scale | box | took | result | passed | failed | skipped |"
    yield "|---|---|--:|--:|--:|---|--:|--:|--:|"
    for suite in suites:
        folders = ", ".join(f"`{each}`" for each in suite.tests)
        begin = f"| {suite.name} | {folders} | {suite.scale:g} | {_minutes(suite.box_s)}"
        if outcome := outcomes.get(suite.name):
            yield f"{begin} | {_minutes(outcome.seconds)} | {_result(outcome)}"
        else:
            yield f"{begin} | | {'running' if suite is running else 'not run yet'} | | | |"


def _total(suites: Sequence[Suite], outcomes: Mapping[str, Outcome]) -> str:
    green = sum(outcome.is_green for outcome in outcomes.values())
    took = _minutes(sum(outcome.seconds for outcome in outcomes.values()))
    return f"{len(outcomes)} of {len(suites)} suites have run, in {took} minutes; {green} of them are green."


def _result(outcome: Outcome) -> str:
    tests = outcome.tests
    verdict = "green" if outcome.is_green else "**not green**"
    return f"{verdict}: {outcome.sentence} | {tests.passed} | {len(tests.failed)} | {tests.skipped} |"


def _found(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    found = [line for name, outcome in outcomes.items() for line in _findings(name, outcome)]
    yield from ("", "## What it found", "", *(found or ["Nothing."]))


def _findings(name: str, outcome: Outcome) -> Iterator[str]:
    if outcome.end == "broken":
        yield f"- {name}: {outcome.reason}"
    yield from (f"- {name}: failed: `{test}`: {_plain(text)}" for test, text in outcome.tests.failed.items())
    yield from (f"- {name}: had begun and was ended: `{test}`" for test in outcome.tests.unfinished)
    yield from (f"- {name}: left a process behind: `{command}`" for command in outcome.left_behind)
    yield from (f"- {name}: {_plain(note)}" for note in outcome.tests.notes)


def _figures(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    rows = [(name, *item) for name, outcome in outcomes.items() for item in outcome.tests.figures.items()]
    if rows:
        yield from ("", "## Figures", "", "| suite | what | times |", "|---|---|--:|")
        yield from (f"| {name} | {what} | {times:,} |" for name, what, times in rows)


def _use(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    yield from (
        "",
        "## Use",
        "",
        "The most at a time, from a look every five seconds; memory of the machine is that of all programs.",
        "",
    )
    yield "| suite | processes | largest process | open descriptors of one | memory of the machine | slowest test |"
    yield "|---|--:|---|--:|--:|---|"
    for name, outcome in outcomes.items():
        peak, (slowest, seconds) = outcome.peak, outcome.tests.slowest
        yield (
            f"| {name} | {peak.processes} | {peak.largest} {peak.largest_mib:,} MiB | {peak.descriptors} | "
            f"{peak.used_mib:,} MiB | `{slowest.rpartition('/')[2]}` {seconds:.0f} s |"
        )


def _conditions(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    names = dict.fromkeys(name for outcome in outcomes.values() for name in outcome.conditions)
    yield from ("", "## Conditions", "", f"| suite | began | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}")
    for name, outcome in outcomes.items():
        yield f"| {name} | {outcome.began} | {' | '.join(outcome.conditions.get(each, '') for each in names)} |"


def _plain(text: str) -> str:
    """As text in a list of Markdown, whatever an error has in it."""
    quoted = text.replace("`", "'")
    return f"`{quoted}`" if quoted else "no message"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
