"""Large answers over HTTP: none is over 4 MiB, and the next page begins where one ends."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from tape.bus.journal import Journal
from tape.compose import ledgers_of
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.core.run_state import RunStatus
from tape.runs.forks import Forks
from tape.sdk.nouns.node import AsyncNode
from tape.server.app import App
from tape.server.http.guard import Guard
from tape.server.http.router import Router
from tape.server.node import Node
from tape.server.routes.table import ROUTES
from tests.contract.backends import needs_ledgers
from tests.contract.events import append
from tests.contract.reactions import match, reaction
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers

MOST = 4 << 20
LARGE = "x" * 900_000


@pytest.fixture
async def http(store: Store, journal: Journal) -> AsyncIterator[httpx.AsyncClient]:
    ledgers = ledgers_of(store, journal)
    node = Node(journal=journal, runs=store.runs, forks=Forks(journal), ledgers=ledgers, operations=ledgers)
    transport = httpx.ASGITransport(app=App(node, Guard(), Router(ROUTES)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:7880") as client:
        yield client


async def answered(http: httpx.AsyncClient, path: str, **parameters: Any) -> Any:
    """An answer within the bound."""
    answer = await http.get(path, params=parameters)
    assert answer.status_code == 200 and len(answer.content) <= MOST
    return answer.json()


async def pages(http: httpx.AsyncClient, path: str, noun: str, **parameters: Any) -> list[list[Any]]:
    """All pages of a list."""
    found: list[list[Any]] = []
    with anyio.fail_after(DEADLINE_S):
        while True:
            answer = await answered(http, path, **parameters)
            found.append(answer[noun])
            if not answer["next_cursor"]:
                return found
            parameters["cursor"] = answer["next_cursor"]


async def test_values_come_page_by_page(store: Store, journal: Journal, http: httpx.AsyncClient) -> None:
    values = AsyncNode(ledgers_of(store, journal)).values
    for n in range(30):
        await values.set("n", f"{n:02}", "v" * 150_000)

    found = await pages(http, "/values/n", "values")
    few = await pages(http, "/values/n", "values", limit=30)

    assert [each["key"] for page in found for each in page] == [f"{n:02}" for n in range(30)] and len(found) == 2
    assert [len(page) for page in few] == [27, 3]


async def test_versions_of_a_value_come_page_by_page(store: Store, journal: Journal, http: httpx.AsyncClient) -> None:
    values = AsyncNode(ledgers_of(store, journal)).values
    for n in range(1, 31):
        await values.set("n", "k", f"{n} " + "v" * 150_000)

    found = await pages(http, "/values/n/k/history", "versions", limit=100)

    versions = [each["version"] for page in reversed(found) for each in page]
    assert versions == list(range(1, 31)) and len(found) == 2


async def test_reactions_come_page_by_page(store: Store, http: httpx.AsyncClient) -> None:
    predicate = f"payload.text == '{'x' * 4_000}'"
    for n in range(1_100):
        await store.reactions.register(reaction(f"rule-{n:04}", predicate_cel=predicate))

    found = await pages(http, "/reactions", "reactions")

    assert [each["reaction_id"] for page in found for each in page] == [f"rule-{n:04}" for n in range(1_100)]
    assert len(found) == 2


async def test_tasks_are_bounded_as_the_answer_writes_them(store: Store, http: httpx.AsyncClient) -> None:
    await store.reactions.register(reaction())
    for _ in range(6):
        await append(store, Event(run_id="r1", payload='"' * 450_000, subject="/a/b"))
    await match(store)

    found = await pages(http, "/tasks", "tasks")

    assert [each["source_seq"] for page in found for each in page] == [6, 5, 4, 3, 2, 1] and len(found) == 3


async def test_a_difference_shows_what_an_answer_carries(store: Store, http: httpx.AsyncClient) -> None:
    for run_id in ("one", "other"):
        for n in range(4):
            await append(store, Event(run_id=run_id, payload=[run_id, n, LARGE], subject="/a/b"))

    found = await answered(http, "/runs/one/diff/other")

    shown = [row["one"]["seq"] for row in found["entries"]]
    assert found["differing"] == 4 and shown == [1, 2, 3, 4][: len(shown)] and 1 <= len(shown) < 4


async def test_runs_are_bounded_as_the_answer_writes_them(journal: Journal, http: httpx.AsyncClient) -> None:
    for n in range(540):  # of 8 KiB each
        await journal.open_run(f"r{n}", RunMeta(label="😀" * 1_024, started_at="😀" * 1_024))

    found = await answered(http, "/runs", limit=1_000)

    assert 400 < len(found["runs"]) < 540


async def test_a_run_shows_the_obligations_that_an_answer_carries(
    store: Store, journal: Journal, http: httpx.AsyncClient
) -> None:
    node = AsyncNode(ledgers_of(store, journal))
    run = (await node.runs.begin("app", "user", "session", owner="w")).run
    for n in range(5):
        effect = await node.effects.begin(run.run_id, "t", call_index=n)
        await node.obligations.register(run.run_id, effect.idempotency_key, "k")
    await node.runs.end(run.run_id, RunStatus.FAILED)
    while due := await node.obligations.due():
        claim = await node.obligations.claim(run.run_id, due[0].number, "w")
        await node.obligations.attempt(run.run_id, due[0].number, claim.obligation.claim.attempt, LARGE)

    found = await answered(http, f"/runs/{run.run_id}")

    assert len(found["obligations"]) == 4


@pytest.mark.parametrize("path", ["/values/n", "/values/n/k/history", "/reactions", "/tasks"])
async def test_a_cursor_that_no_list_gave_is_refused(http: httpx.AsyncClient, path: str) -> None:
    await http.put("/values/n/k", json={"value": 1})

    answer = await http.get(path, params={"cursor": "[[]]"})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")
