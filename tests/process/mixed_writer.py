"""A process that appends in every way: plainly, with a ledger's cell, and in transactions that lock rows first."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from random import Random

import anyio

from tape.compose import open_store
from tape.core.errors import TapeError, Unavailable, VersionConflict
from tape.core.event import Entry
from tape.core.ports import Store
from tape.core.sequence import AppendRequest, CellChange, CellId
from tests.process import log, workload
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, Op, now_ns

SCRATCH = 4
LOCK_ROW = "SELECT n FROM public.scratch WHERE n = :n FOR UPDATE"
CHANGE_ROW = "UPDATE public.scratch SET times = times + 1 WHERE n = :n"


class RolledBack(Exception):
    """The writer rolls back."""


async def run(options: Namespace) -> None:
    done = [op.number for op in log.read(options.log, Op) if op.what == "ok"]
    records = Log(options.log)
    async with open_store(options.url) as store:
        for number in range(max(done, default=0) + 1, options.requests + 1):
            await MixedWriter(store, options, number).work(records)
            await anyio.sleep(options.pause_ms / 1000 * Random().random())


class MixedWriter:
    """Appends one request."""

    def __init__(self, store: Store, options: Namespace, number: int) -> None:
        self._store = store
        self._number = number
        self._key = workload.key(options.log.stem, number)
        self._events = tuple(workload.events(options.log.stem, number, options.most))
        self._chance = Random(f"{self._key} way")
        self._pause_s = options.pause_ms / 1000

    async def work(self, records: Log) -> None:
        """Retries until it is acknowledged."""
        way = self._chance.choice([self._plainly, self._with_a_cell, self._in_a_block])
        while True:
            records.write(Op(now_ns(), self._number, "invoke"))
            try:
                entries = await way()
            except (VersionConflict, RolledBack) as error:
                records.write(Op(now_ns(), self._number, "fail", reason=type(error).__name__))
            except Unavailable as error:
                records.write(Op(now_ns(), self._number, log.result_of(error), reason=error.reason))
                await anyio.sleep(0.01)
            else:
                seqs = tuple(int(entry.seq) for entry in entries)
                return records.write(Op(now_ns(), self._number, "ok", int(entries[0].global_seq), seqs))

    def _request(self, *cells: CellChange) -> AppendRequest:
        return AppendRequest(events=self._events, cells=cells, key=self._key, opens=True)

    async def _plainly(self) -> list[Entry]:
        return await self._append(self._request())

    async def _with_a_cell(self) -> list[Entry]:
        """Changes a cell that other writers change too."""
        cell_id = CellId("writers", str(self._chance.randint(1, SCRATCH)))
        cell = (await self._store.cells.read([cell_id])).get(cell_id)
        seen = cell.version if cell else 0
        change = CellChange(id=cell_id, seen=seen, status="open", state_json=f'"{self._key}"')
        return await self._append(self._request(change))

    async def _in_a_block(self) -> list[Entry]:
        """Locks rows that other writers lock too, in the same order; one transaction in four rolls back."""
        async with self._store.transaction() as tx:
            for n in sorted(self._chance.sample(range(SCRATCH), 2)):
                await tx.fetch(LOCK_ROW, {"n": n})
                await tx.fetch(CHANGE_ROW, {"n": n})
            tx.append(self._request())
            await anyio.sleep(self._pause_s * self._chance.random())
            if self._chance.random() < 0.25:
                raise RolledBack
        (entries,) = tx.outcomes
        return list(entries)

    async def _append(self, request: AppendRequest) -> list[Entry]:
        (outcome,) = await self._store.journal.append([request])
        if isinstance(outcome, TapeError):
            raise outcome
        return list(outcome)


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--most", type=int, default=50)
    parser.add_argument("--pause-ms", type=float, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
