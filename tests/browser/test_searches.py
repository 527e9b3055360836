"""Dry run and backfill in the console: every state of a search."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Page, Route, expect

from tape.core.event import Event
from tape.core.reaction import Reaction
from tape.store.clock import now_ms
from tape.store.sqlite.writer import Writer
from tests.browser.hostile import TEXTS
from tests.browser.looks import judged, looks, sticking
from tests.browser.screen import Screen
from tests.deadlines import DEADLINE_S
from tests.lake.local_lake import opened
from tests.server.server import TapeServer

LATE = Reaction(
    reaction_id="late", subject_pattern="/orders/*", predicate_cel="payload.amount >= 50", bootstrap_from_head=True
)
DAY_MS = 86_400_000
DAYS = 45
FIRST_MS = 20_000 * DAY_MS
DRY: dict[str, Any] = {
    "kind": "dry_run", "reaction_id": "late", "state": "done", "reason": "", "started_at_ms": FIRST_MS,
    "ended_at_ms": FIRST_MS + 24_000, "after": 0, "through": 1_200_000, "searched": 1_200_000,
    "matches": 8_650, "older": 0, "made": 0,
    "days": [{"day_ms": FIRST_MS + n * DAY_MS, "matches": 20 + n * 37 % 90} for n in range(90) if n % 7],
    "samples": [
        {"global_seq": 1_199_000 - n, "run_id": "shop", "seq": 900 - n, "subject": f"/orders/{n}", "ts_ms": FIRST_MS}
        for n in range(5)
    ],
    "errors": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    """One that starts a Spark for every search."""
    with searching(tmp_path_factory.mktemp("searching"), "local[2]") as server:
        yield server


def searching(folder: Path, master: str) -> TapeServer:
    url = f"sqlite:///{folder}/tape.db"
    anyio.run(partial(order, url))
    return TapeServer(folder, url, environment={"TAPE_SPARK_MASTER": master})


async def order(url: str) -> None:
    """Orders of some weeks, and then a reaction to the larger ones."""
    today = day = now_ms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer.__init__, "__defaults__", (None, lambda: day))
        async with opened(url) as (_, journal):
            for day in range(today - DAYS * DAY_MS, today, DAY_MS):
                await journal.append([bought(n) for n in range(4 + day // DAY_MS * 7 % 11)], open=True)
    async with opened(url) as (store, _):
        await store.reactions.register(LATE)


def bought(n: int) -> Event:
    return Event(run_id="shop", subject=f"/orders/{n}", payload={"amount": 20 * n})


@pytest.fixture
async def screen(page: Page, server: TapeServer) -> AsyncIterator[Screen]:
    screen = Screen(page, server.url)
    yield screen
    assert screen.console_errors == []


async def test_a_dry_run_can_be_cancelled(screen: Screen, server: TapeServer) -> None:
    await screen.open("#/reactions/late")
    await screen.page.get_by_role("button", name="Dry run").click()

    await screen.page.get_by_role("button", name="Cancel").click()

    await screen.shows("Dry run, cancelled", DEADLINE_S)
    await expect(screen.page.get_by_role("progressbar")).to_have_count(0)


async def test_every_state_of_a_search_fits_its_window_and_is_accessible(screen: Screen) -> None:
    page = screen.page

    faults = {}
    for name, (searches, text) in STATES.items():
        await page.unroute_all()
        await page.route(
            "**/reactions/late/searches", partial(respond, {"dry_run": None, "backfill": None, **searches})
        )
        await screen.open("#/reactions/late")
        await screen.shows(text)
        await page.locator(".search").scroll_into_view_if_needed()
        async for look in looks(page, f"search-{name}", is_whole=True):
            faults[look] = [*await sticking(page), *await judged(page)]

    assert {look: found for look, found in faults.items() if found} == {}


async def respond(searches: object, route: Route, *, status: int = 200) -> None:
    await route.fulfill(status=status, body=json.dumps(searches), content_type="application/json")


ERRORS = [{"error": TEXTS[2] * 20, "entries": 7, "first_global_seq": 3, "last_global_seq": 90}]
RUNNING = {**DRY, "state": "running", "ended_at_ms": None, "searched": 400_000, "matches": 900}
MADE = {**DRY, "kind": "backfill", "days": [], "samples": [], "made": 8_640, "older": 12}
STATES: dict[str, tuple[dict[str, object], str]] = {
    "never": ({}, "Dry run and backfill"),
    "starting": ({"dry_run": {**RUNNING, "searched": 0, "matches": 0}}, "Spark is starting"),
    "running": ({"dry_run": RUNNING}, "400,000 of 1,200,000 entries"),
    "found": ({"dry_run": DRY}, "8,650 matches in 1,200,000 entries"),
    "nothing": ({"dry_run": {**DRY, "matches": 0, "days": [], "samples": [], "errors": ERRORS}}, "erred 7 times"),
    "making": ({"dry_run": DRY, "backfill": {**MADE, "state": "running", "searched": 9}}, "8,640 tasks made"),
    "made": ({"dry_run": DRY, "backfill": MADE}, "8,640 tasks made of 8,650 matches"),
    "failed": ({"dry_run": {**DRY, "state": "failed", "reason": TEXTS[0]}}, "Dry run failed."),
}


async def test_a_server_without_spark_shows_what_to_install(screen: Screen) -> None:
    refusal = {"title": "Bad Request", "status": 400, "code": "usage_error", "detail": "install tape-bus[spark]"}
    await screen.page.route("**/reactions/late/dry-run", partial(respond, refusal, status=400))
    await screen.open("#/reactions/late")

    await screen.page.get_by_role("button", name="Dry run").click()

    await expect(screen.page.get_by_role("alert")).to_contain_text("Install tape-bus[spark].")
