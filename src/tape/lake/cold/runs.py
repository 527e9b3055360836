"""The runs of a store that forgets, kept in a file each."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from anyio import move_on_after, sleep, to_thread

from tape.core.errors import Conflict, Unavailable
from tape.core.event import Entry
from tape.core.ids import RunId, Seq
from tape.core.run import RunMeta
from tape.lake.cold.persist import persist_entries
from tape.lake.cold.reading import read_page, read_runs
from tape.lake.file_lock import POLL_S, exclusive_lock, is_locked
from tape.store.duckdb.events import ColdRun

COMPARE_S: Final = 3.0


def cold_path(data: Path, run_id: str) -> Path:
    """Where a run is kept; its id never is a part of a path."""
    return data / "runs" / f"{sha256(run_id.encode()).hexdigest()}.duckdb"


class ColdRuns:
    """All of them, in one folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._known: dict[Path, tuple[int, list[ColdRun]]] = {}

    def has(self, run_id: RunId) -> bool:
        return cold_path(self._data, run_id).exists()

    def is_being_written(self, run_id: RunId) -> bool:
        """Whether it is being written, and so cannot be read from here."""
        return is_locked(cold_path(self._data, run_id))

    async def keep(
        self, run_id: RunId, read: Callable[[Seq], AsyncIterator[Entry]], meta: RunMeta | None = None
    ) -> None:
        """Writes a run to its end. What another journal said under its id is set aside, not mixed with it."""
        path = cold_path(self._data, run_id)
        try:
            await persist_entries(read, run_id, path, meta=meta)
        except Conflict:
            await _set_aside(path)
            await persist_entries(read, run_id, path, meta=meta)

    async def stream(self, run_id: RunId, from_seq: Seq = Seq(1)) -> AsyncGenerator[Entry, None]:
        """The entries of a run; raises the gap where they were gone, and Unavailable if the file is being written."""
        path = cold_path(self._data, run_id)
        seq = Seq(max(from_seq, 1))
        while page := await _read_page(path, run_id, seq):
            for entry in page:
                yield entry
            seq = Seq(page[-1].seq + 1)

    async def find(self, run_id: RunId) -> ColdRun | None:
        """A run, unless it is being written."""
        found = await to_thread.run_sync(self._runs, cold_path(self._data, run_id))
        return next((run for run in found if run.run_id == run_id), None)

    async def listed(self) -> list[ColdRun]:
        """Every run that is not being written; a file is opened once for each time it has changed."""
        return await to_thread.run_sync(self._list)

    def _list(self) -> list[ColdRun]:
        return [run for path in sorted((self._data / "runs").glob("*.duckdb")) for run in self._runs(path)]

    def _runs(self, path: Path) -> list[ColdRun]:
        try:
            changed = path.stat().st_mtime_ns
            if self._known.get(path, (0, []))[0] != changed:
                self._known[path] = changed, read_runs(path)
        except (Unavailable, FileNotFoundError):
            return []
        return self._known[path][1]


async def _read_page(path: Path, run_id: RunId, seq: Seq) -> list[Entry]:
    """The next page; waits for a writer that only compares the file with the journal, as after a new epoch."""
    with move_on_after(COMPARE_S):
        while True:
            with suppress(Unavailable):
                return await to_thread.run_sync(read_page, path, run_id, seq)
            await sleep(POLL_S)
    return await to_thread.run_sync(read_page, path, run_id, seq)


async def _set_aside(path: Path) -> None:
    async with exclusive_lock(path):
        await to_thread.run_sync(_rename, path)


def _rename(path: Path) -> None:
    number = sum(1 for _ in path.parent.glob(f"{path.name}.*.aside")) + 1
    path.rename(path.with_name(f"{path.name}.{number}.aside"))
