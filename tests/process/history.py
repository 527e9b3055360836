"""The recorded history of a scenario; each check lists the violations of one invariant."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.process import log, workload
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


class History(NamedTuple):
    """The answers that writers got, the rows of the journal, and what its reader saw."""

    ops: Mapping[str, Sequence[Op]]
    rows: Sequence[Row]
    seen: Sequence[Seen] = ()
    most: int = 50

    @property
    def acknowledged(self) -> list[tuple[str, Op]]:
        return [(writer, op) for writer, ops in self.ops.items() for op in ops if op.what == "ok"]

    @property
    def in_doubt(self) -> list[str]:
        """The keys of requests that never got an answer."""
        last = {writer: ops[-1] for writer, ops in self.ops.items() if ops}
        return [workload.key(writer, op.number) for writer, op in last.items() if op.what != "ok"]

    def lost(self) -> list[str]:
        """Acknowledged events that are not at their acknowledged position."""
        held = {row.event_id: (row.global_seq, row.seq) for row in self.rows}
        return [event for event, position in self._acknowledged_positions() if held.get(event) != position]

    def partial(self) -> list[str]:
        """Requests that are in the journal in part, in pieces or out of order."""
        return [
            f"{key}: {[row.event_id for row in rows]}"
            for key, rows in self._requests()
            if [row.event_id for row in rows] != [f"{key}.{place}" for place in range(self.size(key))]
        ]

    def repeated(self) -> list[str]:
        """Keys that were appended more than once."""
        times = Counter(key for key, _ in self._requests())
        return [key for key, count in times.items() if count > 1]

    def holes(self) -> list[str]:
        """Positions that do not follow the one before, in the journal and in each run."""
        places = [("journal", row.global_seq) for row in self.rows]
        runs = sorted((row.run_id, row.global_seq, row.seq) for row in self.rows)
        places += [(run_id, seq) for run_id, _, seq in runs]
        steps = pairwise([("", 0), *places])
        return [f"{b} follows {a}" for a, b in steps if b[1] != (a[1] + 1 if a[0] == b[0] else 1)]

    def late(self) -> list[str]:
        """Entries that the reader received below a position it had seen."""
        return [
            f"{b.global_seq} came after {a.global_seq}" for a, b in pairwise(self.seen) if b.global_seq < a.global_seq
        ]

    def missed(self) -> list[Row]:
        """Rows that the reader did not receive, or received with other values."""
        return sorted(set(self.rows) - {Row(*seen[1:]) for seen in self.seen})

    def seen_twice(self) -> list[int]:
        times = Counter(seen.global_seq for seen in self.seen)
        return [place for place, count in times.items() if count > 1]

    def _acknowledged_positions(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for writer, op in self.acknowledged:
            for place, seq in enumerate(op.seqs):
                yield f"{workload.key(writer, op.number)}.{place}", (op.first + place, seq)

    def _requests(self) -> Iterator[tuple[str, list[Row]]]:
        """The journal grouped by consecutive keys: one group per appended request."""
        for key, rows in groupby(self.rows, key=lambda row: row.key):
            yield key, list(rows)

    def size(self, key: str) -> int:
        writer, _, number = key.rpartition("-")
        return workload.size(writer, int(number), self.most)


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
