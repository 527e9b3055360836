"""Task outcomes: a snapshot of the tasks of each reaction by status, kept as a table in the lake.

The journal records only which tasks died. How many are done and how long they took is in the task rows, which the
store deletes after a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tape.core.task import Outcomes
from tape.lake.derived_tables import commit_files, find_table, folder_of, rows_of
from tape.lake.log import DATA

if TYPE_CHECKING:
    from tape.core.ids import GlobalSeq

NAME: Final = "task_outcomes"
_TEXTS: Final = ("reaction_id", "status")
_SCHEMA: Final = pa.schema([(name, pa.string() if name in _TEXTS else pa.int64()) for name in Outcomes._fields])


def write_outcomes(lake: Path, found: Sequence[Outcomes], as_of: GlobalSeq) -> Path:
    """Replaces the last snapshot; `as_of` is the journal's head."""
    folder = folder_of(lake, NAME)
    path = folder / DATA / f"{as_of:020}-{uuid4().hex[:12]}" / "part.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([each._asdict() for each in found], schema=_SCHEMA), path)
    commit_files(folder, {path: pq.read_metadata(path)}, as_of)
    return folder


def outcomes_of(lake: Path) -> list[dict[str, Any]]:
    """The rows of the last snapshot; empty if there is none."""
    return rows_of(lake, NAME) if find_table(lake, NAME) else []
