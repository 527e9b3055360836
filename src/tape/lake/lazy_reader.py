"""A lake reader that loads nothing until a reader asks for entries below the journal's floor."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tape.core.errors import UsageError
from tape.core.folder import local_folder
from tape.core.fork import Segment
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Page, RunPage
from tape.core.subject import Pattern

if TYPE_CHECKING:
    from tape.lake.reader import LakeReader

TABLE: Final = "journal"
EMPTY: Final = Bounds(GlobalSeq(1), GlobalSeq(0))


class LazyReader:
    """Reads the lake in a folder; while there is no lake it reads as an empty one."""

    def __init__(self, lake: Path) -> None:
        self._table = local_folder(lake, "a lake") / TABLE
        self._reader: LakeReader | None = None

    async def bounds(self) -> Bounds:
        return EMPTY if self._is_missing() else await self._loaded().bounds()

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        return Page((), after, EMPTY) if self._is_missing() else await self._loaded().read(after, pattern=pattern)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        return (
            RunPage((), None, EMPTY) if self._is_missing() else await self._loaded().read_run(run_id, after, segments)
        )

    def _is_missing(self) -> bool:
        return self._reader is None and not self._table.is_dir()

    def _loaded(self) -> LakeReader:
        if self._reader is None:
            check_installed()
            from tape.lake.log import DeltaLog
            from tape.lake.reader import LakeReader

            self._reader = LakeReader(DeltaLog(self._table))
        return self._reader


def check_installed() -> None:
    """Raises UsageError if a package that reads a lake is missing."""
    for package in ("deltalake", "duckdb", "pyarrow"):
        if find_spec(package) is None:
            raise UsageError(f"a lake needs the package {package}; install tape-bus[spark]")
