"""How `pytest -n` divides the suite among its worker processes.

A worker gets one test file at a time, so that a module's fixtures are made once. Each worker starts its own database
servers: that takes about two seconds, and a test may then kill them. Only the Spark session is too dear for that, so
all files that use it are one unit of work.
"""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

SPARK: Final = "spark"
USES_SPARK: Final = ("tests/lake/", "tests/docs/test_spark_pages.py", "tests/browser/test_searches.py")

# Long files are started first, so that all workers end at about the same time.
FIRST: Final = ("tests/lake/", "tests/docs/", "tests/browser/", "tests/process/", "tests/server/", "tests/packaging/")


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist publishes no types
    """Assigns whole files, and all files that use Spark together."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    return SPARK if nodeid.startswith(USES_SPARK) else nodeid.partition("::")[0]


def rank(nodeid: str) -> tuple[bool, int]:
    """Sorts the unit that takes longest to the front."""
    folders = (number for number, folder in enumerate(FIRST) if nodeid.startswith(folder))
    return unit_of(nodeid) != SPARK, next(folders, len(FIRST))
