"""A page for each test, in one shared Chromium."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, Error, Page, async_playwright, expect

from tests.deadlines import DEADLINE_S
from tests.servers.chromium import ChromiumServer

expect.set_options(timeout=DEADLINE_S * 1000)  # a busy machine is slow, not wrong

SHOTS = Path(__file__).parent / "shots"

Shoot = Callable[[], Awaitable[bytes]]


@pytest.fixture(scope="module")
async def chromium(browser: ChromiumServer) -> AsyncIterator[Browser]:
    """A connection to the browser, shared because connecting takes as long as most tests."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.connect_over_cdp(browser.url)
        yield chromium
        await chromium.close()


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    """An empty page without cookies or cache; an uncaught error in it, or in a page beside it, fails the test."""
    failures: list[Error] = []
    context = await chromium.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(DEADLINE_S * 1000)
    context.on("weberror", lambda error: failures.append(error.error))  # playwright marks what it calls
    yield await context.new_page()
    await context.close()
    assert failures == []


@pytest.fixture
def shoot(page: Page, request: pytest.FixtureRequest) -> Shoot:
    """Takes a picture of the page as it is now, and leaves it in `shots` under the name of the test."""
    return lambda: page.screenshot(path=SHOTS / f"{request.node.name}.png")
