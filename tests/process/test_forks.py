"""SIGKILL in the middle of forks leaves no partial child, on any durable store."""

import time
from collections.abc import Sequence
from random import Random

import anyio
import pytest

from tape.compose import open_store, run_journal
from tape.core.event import Entry
from tape.core.run_query import OPEN_RUNS
from tests.conftest import Scale
from tests.process import log
from tests.process.log import Seen
from tests.process.processes import Processes

KILLS = 4


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, processes: Processes) -> str:
    if request.param == "sqlite":
        return processes.url
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def test_kill_9_in_the_middle_of_forks_leaves_no_half_child(url: str, processes: Processes, scale: Scale) -> None:
    for _ in range(scale(KILLS)):
        forker = processes.start("forker", url, processes.log("forks"))
        processes.wait_for_line("forks")
        time.sleep(Random().uniform(0, 0.05))
        forker.kill()

    recorded = {seen.run_id for seen in log.read(processes.log("forks"), Seen)}
    runs = anyio.run(read, url)

    parent = runs.pop("parent")
    assert recorded <= runs.keys()
    assert [entry.seq for entry in parent] == [*range(1, len(parent) + 1)]
    assert {run_id: found for run_id, found in runs.items() if not is_whole(found, parent)} == {}


async def read(url: str) -> dict[str, list[Entry]]:
    """Every run there is, as a reader is given it."""
    async with open_store(url) as store, run_journal(store) as journal:
        found = {}
        for run in await store.runs.listed(OPEN_RUNS):
            stream = journal.stream(run_id=run.run_id, follow=False)
            found[str(run.run_id)] = [entry async for entry in stream]
        return found


def is_whole(child: Sequence[Entry], parent: Sequence[Entry]) -> bool:
    """Whether it is a beginning of its parent, its fork entry and its mutation."""
    *inherited, forked, mutation = child
    payload = forked.payload
    return (
        isinstance(payload, dict)
        and (forked.type, mutation.type) == ("fork", "mutation")
        and inherited == list(parent[: len(inherited)])
        and payload["at_seq"] == len(inherited) == forked.seq - 1
    )
