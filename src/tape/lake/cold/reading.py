"""Reads runs from DuckDB files, with the same bytes and positions, without the journal."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tape.core.envelope import EventEnvelope, envelope_of
from tape.core.errors import InvalidCursor, UsageError
from tape.core.event import Entry, check_run_id
from tape.core.ids import RunId, Seq
from tape.lake.file_lock import shared_lock
from tape.store.duckdb.connection import open_to_read
from tape.store.duckdb.events import ColdRun, EventRow, Events


def stream_cold(path: str | Path, run_id: str, from_seq: int = 1) -> Iterator[EventEnvelope]:
    """Yields the envelopes that a broker streamed, with the same seqs; raises the same gaps.

    The file is open only while a page is read, so that a slow reader does not block a writer.
    """
    run = check_run_id(run_id)
    for row in _rows(Path(path), run, from_seq):
        yield envelope_of(row.entry, run)


def read_cold(path: str | Path, run_id: str, from_seq: int = 1) -> Iterator[Entry]:
    """Yields the entries that a journal streamed, with all their positions."""
    return map(_entry, _rows(Path(path), check_run_id(run_id), from_seq))


def read_page(path: Path, run_id: RunId, from_seq: Seq) -> list[Entry]:
    """One page of entries; empty at the end."""
    return [_entry(row) for row in _page(path, run_id, from_seq)]


def read_runs(path: Path) -> list[ColdRun]:
    """The runs in a file."""
    with shared_lock(path), closing(open_to_read(path)) as connection:
        return Events(connection).runs()


def _rows(path: Path, run_id: RunId, from_seq: int) -> Iterator[EventRow]:
    if type(from_seq) is not int or from_seq < 0:
        raise InvalidCursor(f"from_seq must be 0 or more, not {from_seq!r}")
    seq = Seq(max(from_seq, 1))
    while page := _page(path, run_id, seq):
        yield from page
        seq = Seq(page[-1].seq + 1)


def _page(path: Path, run_id: RunId, from_seq: Seq) -> list[EventRow]:
    with shared_lock(path), closing(open_to_read(path)) as connection:
        return Events(connection).page(run_id, from_seq)


def _entry(row: EventRow) -> Entry:
    if row.global_seq is None:
        raise UsageError(f"run {row.run_id!r} was written without the journal's positions; stream_cold reads it")
    return row.entry
