"""A client that a generator of others made from the OpenAPI document, against a server."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import httpx
import pytest

from tests.server.conftest import Start
from tests.server.server import TapeServer
from tests.server.test_reactions import eventually
from tests.server.test_work import make_dead_task

PACKAGE = "generated_tape_client"


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, start: Start, tmp_path: Path) -> TapeServer:
    is_file = request.param == "sqlite"
    return start(f"sqlite:///{tmp_path}/tape.db" if is_file else request.getfixturevalue("postgres_url"))


class Generated:
    """The generated functions by the names of the operations, and the generated models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = import_module(f"{PACKAGE}.client").Client
        self.models = import_module(f"{PACKAGE}.models")

    def function(self, name: str) -> ModuleType:
        (found,) = self.folder.glob(f"api/*/{name}.py")
        return import_module(f"{PACKAGE}.api.{found.parent.name}.{name}")


@pytest.fixture(scope="module")
def generated(lasting_server: TapeServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    """A client made from what a server says about itself; the generator warned of nothing."""
    folder, tools = tmp_path_factory.mktemp("generated"), Path(sys.executable).parent
    document = folder / "openapi.json"
    document.write_bytes(httpx.get(f"{lasting_server.url}/openapi.json").content)
    made = subprocess.run(
        [tools / "openapi-python-client", "generate", "--path", document, "--output-path", folder / PACKAGE,
         "--meta", "none", "--fail-on-warning"],
        env={"PATH": str(tools)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield Generated(folder / PACKAGE)


def test_a_generated_client_opens_a_run_publishes_pages_and_replays(server: TapeServer, generated: Generated) -> None:
    models, call = generated.models, generated.function
    with generated.client(base_url=server.url) as client:
        reaction = models.RegisterReaction(reaction_id="rule", subject_pattern="/shop/*", max_concurrency=10)
        call("register_reaction").sync(client=client, body=reaction)
        runs = [models.OpenRun(run_id=f"order-{number}") for number in range(5)]
        opened = [call("open_run").sync(client=client, body=run).run_id for run in runs]
        events = [models.NewEvent(payload={"n": number}, subject="/shop/order") for number in range(3)]
        appended = call("append_events").sync("order-1", client=client, body=events)
        paged = list(pages(call("list_runs"), client))
        eventually(lambda: tasks(call("list_tasks"), client), lambda found: len(found) == 3)
        anyio.run(make_dead_task, server.store, "rule")
        first, *_ = dead = tasks(call("list_tasks"), client)
        replayed = call("replay_tasks").sync(client=client, body=models.ReplayTasks(task_ids=[first]))

    assert [each.seq for each in appended.entries] == [1, 2, 3]
    assert sorted(paged) == opened and len(dead) == 3
    assert replayed.task_ids == [first]


def pages(function: ModuleType, client: Any) -> Iterator[str]:
    """All runs, two on a page."""
    cursor = ""
    while True:
        page = function.sync(client=client, limit=2, cursor=cursor, prefix="order-")
        yield from (each.run_id for each in page.runs)
        cursor = page.next_cursor
        if not cursor:
            return


def tasks(function: ModuleType, client: Any) -> list[str]:
    return [each.task_id for each in function.sync(client=client, reaction_id="rule").tasks]
