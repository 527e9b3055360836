"""The lake's report in a browser."""

from pathlib import Path

import pytest
from playwright.async_api import Page, Request

from tape.lake.reports import report
from tests.browser.conftest import Shoot
from tests.lake.sample_tables import HOSTILE, status, tables


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made, now = tables(), status()
    path = tmp_path / "report.html"
    path.write_text(report.html(made, now, list(report.plots_of(made, now))), encoding="utf-8")
    return path


async def test_the_report_loads_and_runs_nothing(page: Page, file: Path) -> None:
    asked: list[Request] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request))
    page.on("console", lambda message: complaints.append(message.text))

    await page.goto(file.as_uri())

    assert [request.url for request in asked] == [file.as_uri()] and complaints == []
    assert await page.locator("script").count() == 0
    assert await page.get_by_role("img").count() == 8
    assert await page.get_by_role("cell", name=HOSTILE, exact=True).count() == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_report_is_drawn_for_light_and_for_dark(page: Page, file: Path, shoot: Shoot, scheme: str) -> None:
    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    await page.goto(file.as_uri())

    text = await page.locator("svg text").first.evaluate("each => getComputedStyle(each).fill")
    card = await page.locator("section").first.evaluate("each => getComputedStyle(each).backgroundColor")

    assert (text, card) == {
        "light": ("rgb(106, 115, 112)", "rgb(255, 254, 251)"),
        "dark": ("rgb(141, 151, 148)", "rgb(28, 32, 34)"),
    }[scheme]
    assert (await shoot()).startswith(b"\x89PNG")


async def test_a_narrow_report_does_not_scroll_sideways(page: Page, file: Path) -> None:
    await page.set_viewport_size({"width": 420, "height": 800})
    await page.goto(file.as_uri())

    assert await page.evaluate("document.documentElement.scrollWidth") <= 420
