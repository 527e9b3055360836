"""Screenshots of the page, light and dark, wide and on a phone; nothing overflows sideways."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.arena_events import arena_events, open_run, publish
from tests.browser.looks import looks, sticking
from tests.browser.screen import Screen, serve
from tests.server.server import TapeServer

KINDS = (("wide", "light"), ("tablet", "light"), ("phone", "dark"))
VIEWS = {
    "runs": "",
    "run": "#/runs/arena-1",
    "event": "#/runs/arena-1?at=84",
    "filter": "#/runs/arena-1?q=type:action,metric",
    "journal": "#/journal?from=0",
    "pair": "#/runs/CHILD?with=arena-1",
    "fork": "#/runs/arena-1?at=84",
    "missing": "#/runs/no-such-run",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    with serve(tmp_path_factory.mktemp("shots")) as server, server.client() as http:
        publish_arena(http)
        yield server


@pytest.fixture(scope="module")
def child(server: TapeServer) -> str:
    """A fork of the arena in which every settlement was given food."""
    asked = {
        "parent_run_id": "arena-1",
        "at_seq": 80,
        "n_turns": 4,
        "producer": "arena",
        "reason": "What if nobody starves?",
        "mutation": {"food": 900},
    }
    with server.client() as http:
        return str(http.post("/forks", json=asked).raise_for_status().json()["child_run_id"])


async def test_every_view_fits_its_window(page: Page, server: TapeServer, child: str) -> None:
    screen = Screen(page, server.url)

    faults = {}
    for view, place in VIEWS.items():
        await screen.open(place.replace("CHILD", child))
        await settle(screen, view)
        async for look in looks(page, f"page-{view}", KINDS):
            faults[look] = [*await sticking(page), *screen.console_errors]

    assert {look: found for look, found in faults.items() if found} == {}


async def settle(screen: Screen, view: str) -> None:
    """Until there is something to see."""
    match view:
        case "runs":
            await expect(screen.page.get_by_role("link", name="Nightly import")).to_be_visible()
        case "missing":
            await screen.shows("no-such-run")
        case "pair":
            await expect(screen.page.locator(".pair.first")).to_be_visible()
        case "fork":
            await screen.page.get_by_role("button", name="Fork here").click()
            await screen.page.get_by_label("Producer").fill("nobody")
            await screen.page.get_by_role("button", name="Fork", exact=True).click()
            await expect(screen.page.get_by_role("alert")).to_be_visible()
        case _:
            await expect(screen.rows.first).to_be_attached()
            await expect(screen.page.locator(".about .status")).not_to_contain_text("reading")


def publish_arena(http: httpx.Client) -> None:
    """A morning's work: two runs that have ended, and some that go on."""
    now = datetime.now(UTC)
    open_run(http, "nightly-import", "Nightly import", started_at=(now - timedelta(hours=9)).isoformat())
    publish(http, "nightly-import", [{"type": "row", "payload": {"n": n, "ok": True}} for n in range(40)])
    http.post("/runs/nightly-import/close")
    open_run(http, "arena-1", "Three settlements, seed 7", started_at=(now - timedelta(minutes=20)).isoformat())
    for turn in range(12):
        publish(http, "arena-1", arena_events(12)[20 * turn : 20 * turn + 20])
    http.post("/runs/arena-1/close")
    open_run(http, "arena-live", "The same, still going on", started_at=now.isoformat())
    publish(http, "arena-live", arena_events(4))
    open_run(http, "support", "Support agent for a customer whose name is rather long", started_at=now.isoformat())
    publish(
        http,
        "support",
        [{"type": "message", "payload": {"text": "Hello,\nwhere is my order?", "order": 9007199254740993}}],
    )
