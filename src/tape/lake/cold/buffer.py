"""A bounded buffer of rows that were read and are not written yet."""

from typing import Final, NamedTuple

import anyio

from tape.core.errors import TapeError
from tape.store.duckdb.events import EventRow, Gap

ROWS: Final = 2_000
BYTES: Final = 8 << 20


class ColdBatch(NamedTuple):
    """The rows and gaps that are written in one transaction."""

    rows: list[EventRow]
    gaps: list[Gap]


class RowBuffer:
    """One task puts rows, another takes all of them; after the end `take` returns None or raises the failure."""

    def __init__(self) -> None:
        self._batch = ColdBatch([], [])
        self._weight = 0
        self._is_over = False
        self._failure: TapeError | None = None
        self._filled = anyio.Event()
        self._emptied = anyio.Event()

    @property
    def is_full(self) -> bool:
        return len(self._batch.rows) >= ROWS or self._weight >= BYTES

    def put(self, row: EventRow) -> None:
        self._batch.rows.append(row)
        self._weight += row.weight
        self._filled.set()

    def put_gap(self, gap: Gap) -> None:
        self._batch.gaps.append(gap)
        self._filled.set()

    def end(self, failure: TapeError | None = None) -> None:
        self._is_over = True
        self._failure = failure
        self._filled.set()

    async def wait_for_space(self) -> None:
        while self.is_full:
            await self._emptied.wait()

    async def take(self) -> ColdBatch | None:
        """Waits for at least one row or gap and takes all of them; None at the end."""
        await self._filled.wait()
        if self._failure is not None and not any(self._batch):
            raise self._failure
        if not any(self._batch):
            return None
        taken, self._batch = self._batch, ColdBatch([], [])
        self._weight = 0
        self._emptied.set()
        self._emptied = anyio.Event()
        if not self._is_over:
            self._filled = anyio.Event()
        return taken
