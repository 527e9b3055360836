"""A browser tab on the console, and a server for it."""

from pathlib import Path
from typing import Any

from playwright.async_api import ConsoleMessage, Page, expect

from tests.deadlines import DEADLINE_S
from tests.server.server import TapeServer

EXPECTED = "Failed to load resource"  # the browser logs it for every error status, also for expected ones


class Screen:
    """One tab; errors and warnings of its console are recorded."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url
        self.console_errors: list[str] = []
        page.on("console", self._on_console)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and EXPECTED not in message.text:
            self.console_errors.append(message.text)

    async def open(self, fragment: str = "") -> None:
        """Reloads the page at a fragment; changing the fragment alone would load nothing."""
        await self.page.goto("about:blank")
        await self.page.goto(f"{self._url}/{fragment}")

    @property
    def rows(self) -> Any:
        return self.page.get_by_role("listbox").get_by_role("option")

    def row(self, seq: int) -> Any:
        return self.page.locator(f"#entry-{seq}")

    async def shows(self, text: str, timeout_s: float = DEADLINE_S) -> None:
        await expect(self.page.get_by_text(text).first).to_be_visible(timeout=timeout_s * 1000)

    async def status(self, text: str, timeout_s: float = DEADLINE_S) -> None:
        await expect(self.page.locator(".about .status").first).to_contain_text(text, timeout=timeout_s * 1000)


def serve(folder: Path, *options: str, store: str | None = None) -> TapeServer:
    return TapeServer(folder, store or f"sqlite:///{folder}/tape.db", *options)
