"""Postgres sessions that end or hang, and the effect on writers."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import asyncpg
import pytest

from tape.bus.journal import Journal
from tape.compose import open_journal
from tape.core.errors import Unavailable
from tests.conftest import Scale
from tests.process import history, log, workload
from tests.process.history import History
from tests.process.log import Op, now_ns
from tests.process.processes import Child, Processes

PUBLISHERS = [f"publisher{number}" for number in range(8)]
WRITERS = [f"writer{number}" for number in range(4)]
ENDINGS = 20
MOST = 3
PAUSES = 2
PAUSE_S = 3.0
IDLE_S = 2.0  # after so long the server ends a session that is idle in a transaction

END_APPENDERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND query ~ 'FROM .*tape_append[(]' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def processes(tmp_path: Path, postgres_url: str) -> Iterator[Processes]:
    with Processes(tmp_path, url=postgres_url) as processes:
        yield processes


async def test_sessions_ended_at_random_leave_each_append_there_once_and_none_in_doubt(
    postgres_url: str, scale: Scale
) -> None:
    ops: dict[str, list[Op]] = {}
    async with open_journal(postgres_url) as journal, anyio.create_task_group() as tasks:
        for name in PUBLISHERS:
            tasks.start_soon(publish, journal, name, ops.setdefault(name, []))
        await end_appenders(postgres_url, scale(ENDINGS))
        tasks.cancel_scope.cancel()

    recorded = History(ops, history.rows(postgres_url), most=MOST)
    assert {op.reason for each in ops.values() for op in each if op.what not in ("invoke", "ok")} == set()
    assert recorded.anomalies("P1", "P2", "P3", "P4", "P5", "P6") == []


def test_a_stopped_writer_blocks_no_other(processes: Processes, scale: Scale) -> None:
    writers = {name: processes.start("writer", processes.url, processes.log(name), "--pause-ms", 5) for name in WRITERS}

    for _ in range(scale(PAUSES)):
        pause_one(processes, writers)

    for writer in writers.values():
        writer.kill()
    recorded = history.collect(processes.folder, WRITERS, place=processes.url)
    assert [op for ops in recorded.ops.values() for op in ops if op.what in ("fail", "unknown")] == []
    assert recorded.anomalies("P1", "P2", "P3", "P4", "P5", "P6") == []


@pytest.mark.parametrize("how", ["lock", "staged"])
def test_a_stopped_transaction_is_ended_and_writes_nothing(processes: Processes, how: str) -> None:
    processes.start("writer", processes.url, processes.log("writer"), "--pause-ms", 5)
    processes.wait_for_line("writer")
    holder = processes.start("lock_holder", processes.url, how)
    processes.wait(lambda: holder.is_paused, "the holder stands still")

    time.sleep(PAUSE_S)
    processes.wait_for_line("writer")  # it goes on although the holder still stands
    holder.resume()
    holder.finish()

    ops = log.read(processes.log("writer"), Op)
    assert {op.what for op in ops} == {"invoke", "ok"}
    assert history.fetch(processes.place, "SELECT run_id FROM tape_heads WHERE run_id = 'holder'") == []


async def publish(journal: Journal, name: str, ops: list[Op]) -> None:
    """Appends without a key, so that nothing but the store itself makes it once."""
    for number in count(1):
        with anyio.CancelScope(shield=True):
            ops.append(Op(now_ns(), number, "invoke"))
            ops.append(await outcome(journal, name, number))
        await anyio.lowlevel.checkpoint()


async def outcome(journal: Journal, name: str, number: int) -> Op:
    try:
        entries = await journal.append(workload.events(name, number, MOST), open=True)
    except Unavailable as error:
        return Op(now_ns(), number, log.result_of(error), reason=error.reason)
    return Op(now_ns(), number, "ok", int(entries[0].global_seq), tuple(int(entry.seq) for entry in entries))


async def end_appenders(url: str, times: int) -> None:
    chance = Random()
    connection = await asyncpg.connect(url)
    for _ in range(times):
        await anyio.sleep(chance.uniform(0, 0.05))
        while await connection.fetchval(END_APPENDERS) is None:  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.001)
    await connection.close()


def pause_one(processes: Processes, writers: dict[str, Child]) -> None:
    """The others go on while a writer is paused at a random moment, for longer than a transaction may idle."""
    chance = Random()
    name = chance.choice(WRITERS)
    processes.wait_for_line(name)
    time.sleep(chance.uniform(0, 0.02))
    writers[name].pause()
    time.sleep(PAUSE_S)
    others = [other for other in WRITERS if other != name]
    for other in others:
        processes.wait_for_line(other)
    writers[name].resume()
    processes.wait_for_line(name)
