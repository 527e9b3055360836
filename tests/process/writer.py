"""A process that appends, and logs each request and its result.

Restarted on the same log, it first repeats the request without an answer.
"""

import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random

import anyio

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.errors import Unavailable
from tape.store.sqlite.location import Location
from tape.store.sqlite.store import open_store as open_sqlite
from tests.process import log, workload
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, Op, now_ns


async def run(options: Namespace) -> None:
    while True:
        try:
            return await work(options)
        except Unavailable:
            await anyio.sleep(0.05)  # the journal cannot be opened while the server is down


async def work(options: Namespace) -> None:
    done = [op.number for op in log.read(options.log, Op) if op.what == "ok"]
    first = max(done, default=0) + 1
    numbers = count(first) if options.requests is None else range(first, options.requests + 1)
    records = Log(options.log)
    async with open_journal(options) as journal:
        for number in numbers:
            await append(journal, records, options, number)
            await anyio.sleep(options.pause_ms / 1000 * Random().random())


async def append(journal: Journal, records: Log, options: Namespace, number: int) -> None:
    """Retries until it is acknowledged; the key makes that one append."""
    name = options.log.stem
    events = workload.events(name, number, options.most, options.padding)
    while True:
        records.write(Op(now_ns(), number, "invoke"))
        try:
            entries = await journal.append(events, key=workload.key(name, number), open=True)
        except Unavailable as error:
            records.write(Op(now_ns(), number, log.result_of(error), reason=error.reason))
            await anyio.sleep(0.01)
        else:
            seqs = tuple(int(entry.seq) for entry in entries)
            return records.write(Op(now_ns(), number, "ok", int(entries[0].global_seq), seqs))


class ShortTimeout(Location):
    """A location with a short busy timeout."""

    def connect(self) -> sqlite3.Connection:
        connection = super().connect()
        connection.execute("PRAGMA busy_timeout = 200")
        return connection


@asynccontextmanager
async def open_journal(options: Namespace) -> AsyncIterator[Journal]:
    location = ShortTimeout.parse(options.url) if options.is_impatient else None
    opened = open_store(options.url) if location is None else open_sqlite(location)
    async with opened as store, run_journal(store) as journal:
        yield journal


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--most", type=int, default=50)
    parser.add_argument("--padding", type=int, default=0)
    parser.add_argument("--impatient", dest="is_impatient", action="store_true")
    parser.add_argument("--pause-ms", type=float, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
