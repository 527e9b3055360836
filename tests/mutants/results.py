"""What the trials found: kept in results.json as they go, and shown in docs/mutants.md."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Final, TypedDict

from tests.mutants.mistakes import ROOT, Mistake

STORED: Final = Path(__file__).with_name("results.json")
PAGE: Final = ROOT / "docs" / "mutants.md"
COUNTED: Final = ("src", "tests")
INTRODUCTION: Final = """# Mutants

A test that cannot fail proves nothing. `make mutants` makes the mistakes of these tables, each alone in a copy of the
repository, runs the tests that must notice, and fails if a mistake is not noticed within two minutes. Before that it
runs the same tests without a mistake: they must pass.

The mistakes are in `tests/mutants/*.toml`, each with the text that it replaces and the invariant that it breaks.
`make mutants ONLY=name` tries one of them, `make mutants JOBS=2` two at a time. A run that was interrupted goes on
where it was, as long as no source has changed. The seconds are those of the whole run of the tests, with the start of
the servers that they need."""
SLOWEST: Final = 5


class Caught(TypedDict):
    """The test that noticed a mistake, how long it took, and a digest of the sources with which it was tried."""

    caught_by: str
    seconds: float
    sources: str


def read_results() -> dict[str, Caught]:
    found: dict[str, Caught] = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    return found


def write_results(results: Mapping[str, Caught], mistakes: Sequence[Mistake]) -> None:
    """Stores the results of mistakes that there still are, and writes the page."""
    kept = {mistake.name: results[mistake.name] for mistake in mistakes if mistake.name in results}
    STORED.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text("\n".join(page(kept, mistakes)) + "\n", encoding="utf-8")


def digest_of_sources(*left_out: Path) -> str:
    """A digest of everything that a trial depends on, but the results themselves and some more files."""
    digest = sha256()
    for folder in COUNTED:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path not in (STORED, *left_out) and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def summary(results: Mapping[str, Caught], mistakes: Sequence[Mistake]) -> Iterator[str]:
    """How many mistakes were caught, by which suite, how soon, and which took longest."""
    caught = {mistake.name: results[mistake.name] for mistake in mistakes if mistake.name in results}
    yield f"{len(caught)} of {len(mistakes)} mistakes were caught."
    if not caught:
        return
    suites = Counter(_suite(each) for each in caught.values())
    seconds = [each["seconds"] for each in caught.values()]
    slowest = sorted(caught, key=lambda name: -caught[name]["seconds"])[:SLOWEST]
    yield f"By suite: {', '.join(f'{suite} {count}' for suite, count in suites.most_common())}."
    yield f"Half of them within {median(seconds):.0f} s, all within {max(seconds):.0f} s."
    times = (f"{name} ({caught[name]['seconds']:.0f} s)" for name in slowest)
    yield f"Slowest: {', '.join(times)}."


def page(results: Mapping[str, Caught], mistakes: Sequence[Mistake]) -> Iterator[str]:
    yield from (INTRODUCTION, "", *summary(results, mistakes))
    for area, some in groupby(mistakes, key=lambda mistake: mistake.area):
        yield from ("", f"## {area.capitalize().replace('-', ' ')}", "")
        yield from ("| mistake | invariant | suite | caught by | s |", "|---|---|---|---|--:|")
        yield from (_row(mistake, results.get(mistake.name)) for mistake in some)


def _row(mistake: Mistake, caught: Caught | None) -> str:
    if caught is None:
        return f"| {mistake.name} | {mistake.invariant} | | not tried yet | |"
    file, _, test = caught["caught_by"].partition("::")
    name = test.replace("|", "\\|")
    shown = f"[`{name}`](../{file}) | {caught['seconds']:.0f}"
    return f"| {mistake.name} | {mistake.invariant} | {_suite(caught)} | {shown} |"


def _suite(caught: Caught) -> str:
    return caught["caught_by"].split("/")[1]
