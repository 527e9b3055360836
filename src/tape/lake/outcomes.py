"""Task outcomes: a snapshot of what became of the tasks of each reaction, kept as a table beside the others.

The journal says which tasks died; how many are done and how long they took only their rows say, and those are
forgotten after a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tape.core.task import Outcomes
from tape.lake.derived import FOLDER
from tape.lake.log import APP, LOG, translated

if TYPE_CHECKING:
    from tape.core.ids import GlobalSeq

NAME: Final = "task_outcomes"
_TEXTS: Final = ("reaction_id", "status")
_SCHEMA: Final = pa.schema([(name, pa.string() if name in _TEXTS else pa.int64()) for name in Outcomes._fields])


def write_outcomes(lake: Path, found: Sequence[Outcomes], as_of: GlobalSeq) -> Path:
    """Puts a snapshot in the place of the last one; it says which position the journal had come to."""
    folder = lake / FOLDER / NAME
    rows = pa.Table.from_pylist([each._asdict() for each in found], schema=_SCHEMA)
    properties = CommitProperties(app_transactions=[Transaction(APP, as_of)])
    with translated(folder / LOG):
        write_deltalake(folder, rows, mode="overwrite", name=NAME, commit_properties=properties)
    return folder


def outcomes_of(lake: Path) -> list[dict[str, Any]]:
    """The rows of the last snapshot; none where there is none."""
    folder = lake / FOLDER / NAME
    if not any((folder / LOG).glob("*.json")):
        return []
    with translated(folder / LOG):
        rows: list[dict[str, Any]] = pa.table(DeltaTable(folder).to_pyarrow_table()).to_pylist()
    return rows
