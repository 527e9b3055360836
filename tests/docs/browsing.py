"""Runs a page's JavaScript in a real browser, at the server's own address."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

from tests.deadlines import DEADLINE_S


class ConsoleLog:
    """The lines that a running script has logged so far."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._lines: list[str] = []
        page.on("console", lambda message: self._lines.append(message.text))
        page.on("pageerror", lambda error: self._lines.append(f"error: {error}"))

    def lines(self, count: int) -> str:
        """Waits until there are so many lines."""
        if len(self._lines) < count:
            self._page.wait_for_event("console", lambda _: len(self._lines) >= count, timeout=DEADLINE_S * 1000)
        return "".join(f"{line}\n" for line in self._lines)


@contextmanager
def running(chromium: str, address: str, script: str) -> Iterator[ConsoleLog]:
    """The script in a browser page of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(chromium)
        page = browser.new_context().new_page()
        page.goto(f"http://{address}/health")
        log = ConsoleLog(page)
        page.evaluate(script)
        yield log
        page.context.close()
