"""EventSource of a real browser reads a stream to its end despite connection faults."""

from collections.abc import Sequence

import pytest
from playwright.async_api import Page

from tests.browser.stream_server import StreamServer
from tests.servers.faults import Ending, Plan, Trouble, WaitResult, always, fault_proxy, in_turn, seeded

CLEAN = WaitResult()
TEXTS = [f"{number} é東🜁" for number in range(1, 301)]
READ = """() => {
    window.heard = []
    new EventSource("/events").onmessage = event => heard.push([Number(event.lastEventId), event.data])
}"""


async def test_a_browser_reads_every_event_once_and_in_order(page: Page) -> None:
    async with StreamServer(TEXTS).open() as server:
        await listen(page, server.port)

        assert await heard(page, len(TEXTS)) == numbered(TEXTS)
        assert server.cursors == [0]


async def test_a_browser_that_was_reset_comes_back_with_its_last_id(page: Page) -> None:
    stuck = WaitResult(to_client=Trouble(stalls_after=1_000))
    async with StreamServer(TEXTS).open() as server, fault_proxy(server.port, in_turn(CLEAN, stuck)) as proxy:
        await listen(page, proxy.port)
        before = await heard(page, 1)
        await proxy.cut()

        assert await heard(page, len(TEXTS)) == numbered(TEXTS)
        assert len(server.cursors) == 2 and len(before) <= server.cursors[1] < len(TEXTS)


async def test_a_browser_whose_stream_ends_too_early_comes_back_with_its_last_id(page: Page) -> None:
    ended = WaitResult(to_client=Trouble(ends_after=1_000, ending=Ending.HALF_CLOSE))
    async with StreamServer(TEXTS).open() as server, fault_proxy(server.port, in_turn(CLEAN, ended, ended)) as proxy:
        await listen(page, proxy.port)

        assert await heard(page, len(TEXTS)) == numbered(TEXTS)
        assert len(server.cursors) == 3 and 0 < server.cursors[1] < server.cursors[2]


async def test_a_browser_joins_frames_that_were_split_anywhere(page: Page) -> None:
    crumbs = always(WaitResult(to_server=Trouble(at_most=1), to_client=Trouble(at_most=1)))
    async with StreamServer(TEXTS).open() as server, fault_proxy(server.port, crumbs) as proxy:
        await listen(page, proxy.port)

        assert await heard(page, len(TEXTS)) == numbered(TEXTS)


@pytest.mark.parametrize("seed", [1, 2, 5])
async def test_a_browser_reads_every_event_once_and_in_order_over_any_connection(page: Page, seed: int) -> None:
    plan = after_the_page(seeded(seed, answer=4_000))
    async with StreamServer(TEXTS).open() as server, fault_proxy(server.port, plan) as proxy:
        await listen(page, proxy.port)

        assert await heard(page, len(TEXTS)) == numbered(TEXTS)
        assert proxy.connections > 2


async def listen(page: Page, port: int) -> None:
    """Opens the page of the server on a port, and reads its stream there."""
    await page.goto(f"http://127.0.0.1:{port}/")
    await page.evaluate(READ)


async def heard(page: Page, count: int) -> list[list[object]]:
    """What the page has heard, once it is so much."""
    await page.wait_for_function("count => heard.length >= count", arg=count)
    events: list[list[object]] = await page.evaluate("heard")
    return events


def numbered(texts: Sequence[str]) -> list[list[object]]:
    return [[number, text] for number, text in enumerate(texts, 1)]


def after_the_page(plan: Plan) -> Plan:
    return lambda number: plan(number) if number else CLEAN
