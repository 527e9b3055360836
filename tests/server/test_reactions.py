"""A server matches: what is published through it becomes tasks and runs, without anybody else."""

import time
from collections.abc import Callable
from typing import TypeVar

import anyio
import pytest

from tape.compose import open_store
from tape.core.reaction import HandlerKind, Reaction
from tape.core.task import Task
from tape.matcher.agents import invocation
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start

T = TypeVar("T")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{request.getfixturevalue('tmp_path')}/tape.db"


def test_what_is_published_through_a_server_becomes_a_task_and_a_run(start: Start, url: str) -> None:
    server = start(url)
    register(url, Reaction(reaction_id="task", subject_pattern="/orders/**"))
    agent = HandlerKind.AGENT
    register(url, Reaction(reaction_id="agent", subject_pattern="/orders/**", handler_kind=agent, agent_app="app"))

    with server.client() as http:
        http.post("/runs", json={"run_id": "r1"}).raise_for_status()
        answer = http.post("/runs/r1/events", json={"payload": 1, "subject": "/orders/new"}).json()
        place = answer["entries"][0]["global_seq"]
        run_id = invocation("app", "agent", place).run_id
        found = eventually(lambda: tasks(url), lambda found: len(found) == 1)
        run = eventually(lambda: http.get(f"/runs/{run_id}"), lambda answer: answer.status_code == 200)

    assert [(task.reaction_id, task.source_global_seq) for task in found] == [("task", place)]
    assert run.json()["n_events"] == 1
    assert server.stop() == 0


def test_reactions_are_listed_page_by_page(start: Start, url: str) -> None:
    server = start(url)
    for name in ("b", "c", "a"):
        register(url, Reaction(reaction_id=name, subject_pattern="/orders/**"))

    with server.client() as http:
        first = http.get("/reactions", params={"limit": 2}).json()
        rest = http.get("/reactions", params={"limit": 2, "cursor": first["next_cursor"]}).json()
        foreign = http.get("/reactions", params={"subject_pattern": "/x/**", "cursor": first["next_cursor"]})

    found = (*first["reactions"], *rest["reactions"])
    assert [each["reaction"]["reaction_id"] if "reaction" in each else each["reaction_id"] for each in found] == [
        "a", "b", "c",
    ]  # fmt: skip
    assert (rest["next_cursor"], foreign.status_code) == ("", 400)


def eventually(ask: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)
    return answer


def register(url: str, reaction: Reaction) -> None:
    async def main() -> None:
        async with open_store(url) as store:
            await store.reactions.register(reaction)

    anyio.run(main)


def tasks(url: str) -> list[Task]:
    async def main() -> list[Task]:
        async with open_store(url) as store:
            return list(await store.tasks.listed())

    return anyio.run(main)
