"""A page in every size and color scheme, and what is wrong with it there."""

from collections.abc import AsyncIterator
from pathlib import Path

from playwright.async_api import Page

from tests.browser.conftest import SHOTS
from tests.servers import npm_axe

SIZES = {"wide": (1280, 800), "tablet": (820, 1000), "phone": (360, 740)}
LIGHT_AND_DARK = (("wide", "light"), ("phone", "dark"))
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
STICKING = """() => [...document.querySelectorAll("body *")]
    .filter(one => !one.closest(".types, .facts, .views, svg") && one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.className || one.tagName)"""
JUDGE = """rules => axe.run(document, {runOnly: rules}).then(({violations}) => violations.map(
    ({id, help, nodes}) => `${id}: ${help}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")}`))"""


async def looks(
    page: Page, name: str, kinds: tuple[tuple[str, str], ...] = LIGHT_AND_DARK, *, is_whole: bool = False
) -> AsyncIterator[str]:
    """Shows the page as it is in each size and scheme, and takes a picture of it; only CSS lays it out."""
    for size, scheme in kinds:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        await resize(page, size)
        await page.screenshot(path=SHOTS / f"{name}-{size}-{scheme}.png", full_page=is_whole)
        yield f"{name}-{size}-{scheme}"
    await resize(page, kinds[0][0])


async def resize(page: Page, size: str) -> None:
    width, height = SIZES[size]
    await page.set_viewport_size({"width": width, "height": height})
    await page.wait_for_function("width => innerWidth === width", arg=width)


async def sticking(page: Page) -> list[str]:
    """What lies beyond the window."""
    is_wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return ["the page"] * is_wide + [f"{one} sticks out" for one in await page.evaluate(STICKING)]


async def judged(page: Page) -> list[str]:
    """What axe has to say against the page as it is."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(Path(npm_axe.script()).read_text(encoding="utf-8"))
    found: list[str] = await page.evaluate(JUDGE, RULES)
    return found
