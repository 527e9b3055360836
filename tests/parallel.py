"""How `pytest -n` divides the suite among its worker processes.

A worker gets one test file at a time, so that a module's fixtures are made once. Each worker starts its own database
servers: that takes about two seconds, and a test may then kill them. The Spark session costs too much for that, so the
files that use it are two units of work, which take about as long as each other.
"""

import re
from functools import cache
from typing import Final

from xdist.scheduler import LoadScopeScheduling

from tests.architecture.tree import ROOT

SPARK_LAKE: Final = "spark: tables, source and sink"
SPARK_SEARCHES: Final = "spark: searches, pages and the console"
USES_SPARK: Final = re.compile(r"\bSparkSession\b|\bspark_url\b|usefixtures\(\"spark\"\)")
SEARCHES: Final = re.compile(r"^tests/(?!lake/)|/test_(backfill|dry_run|history|lifecycle_history|searches)")

# Folders with the longest files are started first, so that all workers end at about the same time.
FIRST: Final = ("tests/process/", "tests/server/", "tests/browser/", "tests/lake/", "tests/docs/", "tests/packaging/")


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist publishes no types
    """Assigns whole files, and the files that use Spark in two units."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    if not uses_spark(file):
        return file
    return SPARK_SEARCHES if SEARCHES.search(file) else SPARK_LAKE


@cache
def uses_spark(file: str) -> bool:
    return USES_SPARK.search((ROOT / file).read_text()) is not None


def rank(nodeid: str) -> tuple[bool, int]:
    """Sorts the units that take longest to the front."""
    folders = (number for number, folder in enumerate(FIRST) if nodeid.startswith(folder))
    return unit_of(nodeid) not in (SPARK_LAKE, SPARK_SEARCHES), next(folders, len(FIRST))
