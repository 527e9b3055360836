"""Dry run and backfill in the console, with Spark; in a file of its own, which runs with the other tests of Spark."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import SHOTS
from tests.browser.screen import Screen
from tests.browser.test_searches import DAYS, searching
from tests.deadlines import DEADLINE_S
from tests.server.server import TapeServer

SPARK_S = 4 * DEADLINE_S


@pytest.fixture
def connected(tmp_path: Path, spark_url: str) -> Iterator[TapeServer]:
    """One whose searches go to the Spark that is there."""
    with searching(tmp_path, spark_url) as server:
        yield server


async def test_history_is_counted_and_backfilled_after_confirmation(page: Page, connected: TapeServer) -> None:
    screen = Screen(page, connected.url)
    with connected.client() as http:
        count = larger(http)
    await screen.open("#/reactions/late")
    await expect(page.get_by_role("button", name="Backfill…")).to_be_disabled()

    await page.get_by_role("button", name="Dry run").click()
    await expect(page.get_by_role("progressbar")).to_be_visible()
    await screen.shows(f"{count} matches in", SPARK_S)
    await expect(page.get_by_role("img", name="Matches: ")).to_be_visible()
    await expect(page.locator(".days rect")).to_have_count(DAYS)
    await page.get_by_role("button", name="Backfill…").click()
    await expect(page.get_by_role("heading", name=f"Make {count} tasks?")).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Backfill").click()

    await screen.shows(f"{count} tasks made of {count} matches", SPARK_S)
    await page.screenshot(path=SHOTS / "search-journey.png")
    assert screen.console_errors == []
    with connected.client() as http:
        assert len(http.get("/tasks", params={"reaction_id": "late", "limit": 1000}).json()["tasks"]) == count


def larger(http: httpx.Client) -> int:
    """How many entries the reaction is for, by asking about each."""
    last = http.get("/runs/shop").json()["last_seq"]
    answers = (http.get(f"/reactions/late/explain/{place}").json() for place in range(1, last + 1))
    return sum(one["verdict"]["matched"] for one in answers)
