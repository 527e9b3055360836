"""The runs of a store without history, each kept in a file."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from anyio import move_on_after, sleep, to_thread

from tape.core.errors import Conflict, NotFound, Unavailable
from tape.core.event import Entry
from tape.core.ids import RunId, Seq
from tape.core.run import RunMeta
from tape.lake.cold.persist import persist_entries
from tape.lake.cold.reading import read_page, read_runs
from tape.lake.file_lock import POLL_S, exclusive_lock, is_locked
from tape.store.duckdb.events import ColdRun

COMPARE_S: Final = 3.0


def cold_path(data: Path, run_id: str) -> Path:
    """The file of a run; its name is a hash, because a run id is never part of a path."""
    return data / "runs" / f"{sha256(run_id.encode()).hexdigest()}.duckdb"


class ColdRuns:
    """All cold runs of one data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._known: dict[Path, tuple[int, list[ColdRun]]] = {}

    def has(self, run_id: RunId) -> bool:
        return cold_path(self._data, run_id).exists()

    def is_being_written(self, run_id: RunId) -> bool:
        """Whether a process writes the run's file, so that it cannot be read."""
        return is_locked(cold_path(self._data, run_id))

    async def keep(
        self, run_id: RunId, read: Callable[[Seq], AsyncIterator[Entry]], meta: RunMeta | None = None
    ) -> None:
        """Writes a run to its end. A file with another journal's run of this id is renamed first."""
        path = cold_path(self._data, run_id)
        try:
            await persist_entries(read, run_id, path, meta=meta)
        except Conflict:
            await _set_aside(path)
            await persist_entries(read, run_id, path, meta=meta)

    async def page(self, run_id: RunId, from_seq: Seq = Seq(1)) -> list[Entry]:
        """The entries from a seq on, none at the end of the run; raises a gap that begins there.

        It waits a moment for a writer that only compares the file with the journal, as after a new epoch, and raises
        Unavailable if the file is being written.
        """
        read = partial(to_thread.run_sync, read_page, cold_path(self._data, run_id), run_id, max(from_seq, Seq(1)))
        with move_on_after(COMPARE_S):
            while True:
                with suppress(Unavailable):
                    return await read()
                await sleep(POLL_S)
        return await read()

    async def find(self, run_id: RunId) -> ColdRun | None:
        """The run, or None if it does not exist; raises Unavailable if it is being written."""
        found = await to_thread.run_sync(self._runs, cold_path(self._data, run_id))
        return next((run for run in found if run.run_id == run_id), None)

    async def listed(self) -> list[ColdRun]:
        """Every run that is not being written; a file is opened again only after it has changed."""
        return await to_thread.run_sync(self._list)

    def _list(self) -> list[ColdRun]:
        found: list[ColdRun] = []
        for path in sorted((self._data / "runs").glob("*.duckdb")):
            with suppress(Unavailable):
                found += self._runs(path)
        return found

    def _runs(self, path: Path) -> list[ColdRun]:
        try:
            changed = path.stat().st_mtime_ns
            if self._known.get(path, (0, []))[0] != changed:
                self._known[path] = changed, read_runs(path)
        except (NotFound, FileNotFoundError):
            return []
        return self._known[path][1]


async def _set_aside(path: Path) -> None:
    async with exclusive_lock(path):
        await to_thread.run_sync(_rename, path)


def _rename(path: Path) -> None:
    number = sum(1 for _ in path.parent.glob(f"{path.name}.*.aside")) + 1
    path.rename(path.with_name(f"{path.name}.{number}.aside"))
