"""kill -9 in the middle of forks: no half child is left behind, on any store that outlives its process."""

import time
from collections.abc import Sequence
from random import Random

import anyio
import pytest

from tape.compose import open_store, run_journal
from tape.core.event import Entry
from tests.conftest import Scale
from tests.process import log
from tests.process.crew import Crew
from tests.process.log import Seen

KILLS = 4


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, crew: Crew) -> str:
    if request.param == "sqlite":
        return crew.url
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def test_kill_9_in_the_middle_of_forks_leaves_no_half_child(url: str, crew: Crew, scale: Scale) -> None:
    for _ in range(scale(KILLS)):
        forker = crew.start("forker", url, crew.log("told"))
        crew.wait_for_line("told")
        time.sleep(Random().uniform(0, 0.05))
        forker.kill()

    told = {seen.run_id for seen in log.read(crew.log("told"), Seen)}
    runs = anyio.run(read, url)

    parent = runs.pop("parent")
    assert told <= runs.keys()
    assert [entry.seq for entry in parent] == [*range(1, len(parent) + 1)]
    assert {run_id: found for run_id, found in runs.items() if not is_whole(found, parent)} == {}


async def read(url: str) -> dict[str, list[Entry]]:
    """Every run there is, as a reader is given it."""
    async with open_store(url) as store, run_journal(store) as journal:
        found = {}
        for run in await store.runs.listed(is_open=True):
            stream = journal.stream(run_id=run.run_id, follow=False)
            found[str(run.run_id)] = [entry async for entry in stream]
        return found


def is_whole(child: Sequence[Entry], parent: Sequence[Entry]) -> bool:
    """Whether it is a beginning of its parent, its fork entry and its mutation."""
    *inherited, forked, mutation = child
    said = forked.payload
    return (
        isinstance(said, dict)
        and (forked.type, mutation.type) == ("fork", "mutation")
        and inherited == list(parent[: len(inherited)])
        and said["at_seq"] == len(inherited) == forked.seq - 1
    )
