"""How `pytest -n` divides the suite among its worker processes.

A worker gets one test file at a time, so that a module's fixtures are made once. Each worker starts its own database
servers: that takes about two seconds, and a test may then kill them. The Spark session costs too much for that, so all
files that use it are one unit of work.
"""

import re
from functools import cache
from typing import Final

from xdist.scheduler import LoadScopeScheduling

from tests.architecture.tree import ROOT

SPARK: Final = "spark"
USES_SPARK: Final = re.compile(r"\bSparkSession\b|\bspark_url\b|usefixtures\(\"spark\"\)")

# Folders with the longest files are started first, so that all workers end at about the same time.
FIRST: Final = ("tests/process/", "tests/server/", "tests/browser/", "tests/lake/", "tests/docs/", "tests/packaging/")


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist publishes no types
    """Assigns whole files, and all files that use Spark together."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return SPARK if uses_spark(file) else file


@cache
def uses_spark(file: str) -> bool:
    return USES_SPARK.search((ROOT / file).read_text()) is not None


def rank(nodeid: str) -> tuple[bool, int]:
    """Sorts the unit that takes longest to the front."""
    folders = (number for number, folder in enumerate(FIRST) if nodeid.startswith(folder))
    return unit_of(nodeid) != SPARK, next(folders, len(FIRST))
