"""The recorded history of a scenario of writers and a tail, judged by the checker."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tape.checker.invariant_result import InvariantResult
from tape.checker.lines import AnyLine, AppendedEvent, AppendedPosition, AppendLine, EntryLine, StreamLine
from tests.process import log, recorder, workload
from tests.process.log import Op, Seen
from tests.servers import databases


class Row(NamedTuple):
    """A row of the journal, read without any of our own code."""

    global_seq: int
    run_id: str
    seq: int
    event_id: str

    @property
    def key(self) -> str:
        return self.event_id.partition(".")[0]


@dataclass(frozen=True)
class History:
    """The answers that writers got, the rows of the journal, and what its reader saw."""

    ops: Mapping[str, Sequence[Op]]
    rows: Sequence[Row]
    seen: Sequence[Seen] = ()
    most: int = 50

    @property
    def acknowledged(self) -> list[tuple[str, Op]]:
        return [(writer, op) for writer, ops in self.ops.items() for op in ops if op.what == "ok"]

    def anomalies(self, *invariants: str) -> list[str]:
        """What contradicts some invariants; nothing to judge is no proof either."""
        return recorder.anomalies(self._findings, *invariants)

    def contradictions(self, *invariants: str) -> list[str]:
        return recorder.contradictions(self._findings, *invariants)

    def lines(self) -> list[AnyLine]:
        """The history as the checker reads it: at the end, the rows are a read of the whole journal."""
        live = [line for writer, ops in self.ops.items() for op in ops for line in self._appended(writer, op)]
        return [*recorder.in_order([*live, *self._delivered("tail", self.seen)]), *self._read()]

    @cached_property
    def _findings(self) -> dict[str, InvariantResult]:
        return recorder.findings(self.lines())

    def _appended(self, writer: str, op: Op) -> Iterator[AnyLine]:
        events = appended(writer, op.number, self.most) if op.what == "invoke" else ()
        positions = tuple(AppendedPosition(op.first + place, seq) for place, seq in enumerate(op.seqs))
        key = workload.key(writer, op.number) if events else ""
        yield AppendLine(
            client=writer, number=op.number, at_ns=op.at_ns, step=op.what, reason=op.reason, key=key, events=events,
            positions=positions,
        )  # fmt: skip

    def _delivered(self, reader: str, seen: Sequence[Seen], follow: bool = True) -> Iterator[AnyLine]:
        yield StreamLine(client=reader, number=1, step="invoke", is_followed=follow)
        for each in seen:
            yield EntryLine(
                client=reader, number=1, at_ns=each.at_ns, run_id=each.run_id, seq=each.seq,
                global_seq=each.global_seq, event_id=each.event_id,
            )  # fmt: skip

    def _read(self) -> Iterator[AnyLine]:
        yield from self._delivered("reader", [Seen(0, *row) for row in self.rows], follow=False)
        yield StreamLine(client="reader", number=1, step="ok")


@cache
def appended(writer: str, number: int, most: int) -> tuple[AppendedEvent, ...]:
    """The events of a request, as its line has them."""
    made = workload.events(writer, number, most)
    return tuple(AppendedEvent(event.run_id, event.event_id, event.subject) for event in made)


def rows(place: Path | str) -> list[Row]:
    """The journal of a file or a database without writers; a file that was cut before its first commit has none."""
    if isinstance(place, Path) and not fetch(place, "SELECT 1 FROM sqlite_master WHERE name = 'tape_journal'"):
        return []
    found = fetch(place, "SELECT global_seq, run_id, seq, event_id FROM tape_journal ORDER BY global_seq")
    return [Row._make(row) for row in found]


def head(place: Path | str) -> int:
    ((found,),) = fetch(place, "SELECT coalesce(max(global_seq), 0) FROM tape_journal")
    return int(found)


def fetch(place: Path | str, statement: str) -> list[tuple[Any, ...]]:
    if isinstance(place, str):
        return databases.fetch(place, statement)
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute(statement).fetchall()


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        (result,) = connection.execute("PRAGMA integrity_check").fetchone()
        return str(result)


def collect(folder: Path, writers: Sequence[str], most: int = 50, place: str | None = None) -> History:
    """The history from a folder of logs and a journal."""
    ops = {writer: log.read(folder / f"{writer}.jsonl", Op) for writer in writers}
    return History(ops, rows(place or folder / "journal.db"), log.read(folder / "seen.jsonl", Seen), most)
