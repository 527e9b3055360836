"""When a closed run is reaped, and which files count as copies."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
import redis

from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.event import Event
from tape.core.ids import RunId, Seq
from tape.core.run import Head, RunMeta, RunRecord
from tape.lake.cold.runs import ColdRuns as ColdFiles
from tape.runs.cold_runs import ColdRuns
from tape.runs.forks import Forks
from tape.server.maintenance import RunMaintenance, is_due
from tape.server.node import Node
from tests.deadlines import DEADLINE_S


def closed(at_ms: int | None) -> RunRecord:
    head = Head(Seq(3), None if at_ms is None else Seq(3))
    return RunRecord(run_id=RunId("r"), meta=RunMeta(), head=head, opened_at_ms=0, closed_at_ms=at_ms)


@pytest.mark.parametrize(("at_ms", "expected"), [(0, True), (1_000, True), (1_001, False), (None, False)])
def test_a_run_is_due_when_it_has_been_closed_for_long_enough(at_ms: int | None, expected: bool) -> None:
    assert is_due(closed(at_ms), timedelta(minutes=30), now_ms=1_801_000) is expected


@pytest.fixture
async def node(redis_url: str, tmp_path: Path) -> AsyncIterator[Node]:
    """A server's node that keeps its runs in files, and its maintenance."""
    async with open_store(redis_url) as store, run_journal(store) as journal:
        cold = ColdRuns(ColdFiles(tmp_path))
        node = Node(journal=journal, runs=store.runs, forks=Forks(journal), cold=cold, is_bounded=True)
        async with background(RunMaintenance(node).run):
            yield node


async def test_files_of_an_earlier_epoch_do_not_count_as_copies(node: Node, redis_url: str) -> None:
    cold = node.cold
    assert cold is not None
    await lived(node, "lost")
    await until(lambda: bool(cold.incarnations))
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    await until(lambda: not cold.incarnations)

    await lived(node, "found")
    await until(lambda: bool(cold.incarnations))

    assert [entry.payload for entry in await cold.page(RunId("r"), Seq(1))] == ["found"]


async def lived(node: Node, payload: str) -> None:
    await node.journal.append(Event(run_id="r", payload=payload), open=True)
    await node.journal.close_run("r")


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not is_true():  # noqa: ASYNC110 - nothing tells us
            await anyio.sleep(0.02)
