"""Screenshots of the other views, wide and on a phone, and their accessibility."""

from collections.abc import Iterator
from functools import partial

import anyio
import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.arena_events import arena_events
from tests.browser.looks import judged, looks, sticking
from tests.browser.sample_store import SHIP, fill_store
from tests.browser.screen import Screen
from tests.server.server import TapeServer

VIEWS = {
    "welcome": ("#/", ".runs li"),
    "ledgers": ("#/runs/RUN?at=9", ".inspector"),
    "live": ("#/journal?from=0", ".row"),
    "pair": ("#/runs/CHILD?with=arena", ".pair.first"),
    "reactions": ("#/reactions", "td a"),
    "reaction": (f"#/reactions/{SHIP}?at=POSITION", ".explanation"),
    "tasks": ("#/tasks", "td a"),
    "task": ("#/tasks/TASK", ".json"),
    "replay": ("#/tasks?status=dlq", "td a"),
    "outbox": ("#/outbox", "td a"),
    "letter": ("#/outbox/LETTER", ".json"),
    "lake": ("#/lake?table=tool_usage", ".bars"),
    "system": ("#/system", ".line svg"),
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server in which everything has happened, and what the addresses of its views need."""
    folder = tmp_path_factory.mktemp("looks")
    run_id = anyio.run(partial(fill_store, f"sqlite:///{folder}/tape.db", folder / "lake"))
    with TapeServer(folder, f"sqlite:///{folder}/tape.db") as server, server.client() as http:
        http.post("/runs", json={"run_id": "arena", "label": "Three settlements"}).raise_for_status()
        http.post("/runs/arena/events", json=arena_events(6)).raise_for_status()
        asked = {"parent_run_id": "arena", "at_seq": 40, "n_turns": 3, "producer": "arena", "mutation": {"food": 0}}
        dead = http.get("/tasks", params={"status": "dlq"}).json()["tasks"][0]
        yield {
            "URL": server.url,
            "RUN": run_id,
            "CHILD": http.post("/forks", json=asked).json()["child_run_id"],
            "POSITION": str(dead["source_global_seq"]),
            "TASK": dead["task_id"],
            "LETTER": http.get("/outbox?status=failed").json()["rows"][0]["event_id"],
        }


async def test_every_view_fits_its_window_and_is_accessible(page: Page, named: dict[str, str]) -> None:
    screen = Screen(page, named["URL"])

    faults = {}
    for view in VIEWS:
        await arrive(screen, view, named)
        async for look in looks(page, f"view-{view}"):
            faults[look] = [*await sticking(page), *await judged(page), *screen.console_errors]

    assert {look: found for look, found in faults.items() if found} == {}


async def arrive(screen: Screen, view: str, named: dict[str, str]) -> None:
    """Opens a view and waits until there is something to see."""
    address, sign = VIEWS[view]
    for name, value in named.items():
        address = address.replace(name, value)
    await screen.open(address)
    await expect(screen.page.locator(sign).first).to_be_visible()
    if view == "replay":
        await screen.page.get_by_role("button", name="Replay all dead").click()
        await expect(screen.page.get_by_role("dialog")).to_be_visible()
    if view == "system":
        async with httpx.AsyncClient(base_url=named["URL"], trust_env=False) as http:
            await http.post("/runs/arena/events", json=arena_events(2))
        await expect(screen.page.locator(".line polyline")).to_have_count(2)
    if view == "lake":
        await screen.page.get_by_role("button", name="Ask", exact=True).click()
        await expect(screen.page.locator(".answered")).to_be_visible()
