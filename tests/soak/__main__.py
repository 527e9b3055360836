"""`make soak`: runs the suites one after another, each within its box of time, and goes on where it was interrupted."""

import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.mutants.results import digest_of_sources
from tests.soak.report import PAGE
from tests.soak.soak import FOLDER, Soak
from tests.soak.suites import PLAN, SUITES, WHOLE_MINUTES, within


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    names = [suite.name for suite in SUITES]
    if unknown := set(options.suites) - set(names):
        raise SystemExit(f"no suite is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    signal.signal(signal.SIGTERM, _stop)
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = digest_of_sources(PLAN)  # an outcome has its scale and box, so a change of one suite concerns no other
    soak = Soak(within(options.minutes), sources, FOLDER, _page(options.minutes))
    return 0 if soak.run(options.suites) else 1


def _options(arguments: Sequence[str]) -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("suites", nargs="*", help="run these again; else those that have not run with these sources")
    parser.add_argument("--minutes", type=float, default=WHOLE_MINUTES, help="for all suites; less makes boxes smaller")
    return parser.parse_args(arguments)


def _page(minutes: float) -> Path:
    """The documentation shows a whole soak only."""
    return PAGE if minutes >= WHOLE_MINUTES else FOLDER / "report.md"


def _stop(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
