"""How long an entry is on its way from a publisher to a reader, in this process and in another one."""

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from statistics import quantiles
from subprocess import PIPE
from time import monotonic_ns

from tape.bus.journal import Journal
from tape.compose import open_journal
from tape.store.sqlite.migrate import migrate
from tape.store.statements import statements
from tests.bench.compare import Comparison, Side
from tests.bench.loop import run
from tests.bench.reader import delays, stamped
from tests.bench.workload import database, entries, events

AREA = "latency"
ENTRIES = 200
PAUSE_S = 0.003


def comparisons() -> list[Comparison]:
    p50, p99 = partial(commit, 50), partial(commit, 99)
    return [
        _row("same process, p50", partial(same_process, 50), p50),
        _row("same process, p99", partial(same_process, 99), p99),
        _row("another process, p50", partial(another_process, 50), p50),
        _row("another process, p99", partial(another_process, 99), p99),
    ]


def _row(name: str, ours: Side, peer: Side) -> Comparison:
    return Comparison(
        area=AREA, name=f"publish to reader against a raw commit, {name}", unit="ms", ours=ours, peer=peer
    )


def commit(percent: int) -> float:
    """A durable transaction of one prepared row, with the same pauses."""
    return _percentile(run(_commit()), percent)


def same_process(percent: int) -> float:
    return _percentile(run(_same_process()), percent)


def another_process(percent: int) -> float:
    return _percentile(run(_another_process()), percent)


async def _commit() -> list[int]:
    insert, late = statements("sqlite", "append.sql")["insert_entry"], []
    with database() as location:
        connection = location.connect()
        migrate(connection)
        for entry in entries(events(ENTRIES)):
            await asyncio.sleep(PAUSE_S)
            started = monotonic_ns()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(insert, entry)
            connection.execute("COMMIT")
            late.append(monotonic_ns() - started)
        connection.close()
    return late


async def _same_process() -> list[int]:
    with database() as location:
        async with open_journal(f"sqlite:///{location.path}") as journal, asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(delays(journal, ENTRIES))
            await _publish(journal)
            return await reading


async def _another_process() -> list[int]:
    with database() as location:
        url = f"sqlite:///{location.path}"
        async with open_journal(url) as journal:
            await journal.append(stamped(), open=True)
            program = [sys.executable, "-m", "tests.bench.reader", url, str(ENTRIES + 1)]
            reader = await asyncio.create_subprocess_exec(*program, stdout=PIPE)  # noqa: TID251 - no gRPC here
            assert reader.stdout is not None
            await reader.stdout.readline()
            await _publish(journal)
            output, _ = await reader.communicate()
    return [int(word) for word in output.split()][1:]  # the first one waited for the program to start


async def _publish(journal: Journal) -> None:
    for _ in range(ENTRIES):
        await asyncio.sleep(PAUSE_S)
        await journal.append(stamped(), open=True)


def _percentile(late: Sequence[int], percent: int) -> float:
    return quantiles(late, n=100)[percent - 1] / 1e6
