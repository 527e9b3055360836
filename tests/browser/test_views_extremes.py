"""Views at their limits: very many tasks, very long texts, names of any kind, and a server that refuses for a while."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from functools import partial
from urllib.parse import quote

import anyio
import pytest
from playwright.async_api import Page, Route, expect

from tape.core.event import Event
from tape.core.predicate.limits import MAX_TEXT_BYTES
from tape.core.reaction import Reaction
from tape.core.task import MAX_ERROR
from tape.matcher.matcher import Matcher
from tests.browser.arena_events import open_run, publish
from tests.browser.looks import resize, sticking
from tests.browser.screen import Screen
from tests.contract.reactions import catch_up
from tests.deadlines import DEADLINE_S
from tests.lake.local_lake import opened
from tests.server.server import TapeServer

MANY = 2_500
WORDS = "nobody says this " * 4
LONG = " || ".join(f'payload.note == "{n} {WORDS}"' for n in range(43))
NAMES = [
    "a/b/../c",
    "../../etc/passwd",
    "é東🜁",
    "a b",
    "%",
    "?x=1",
    "#y",
    "..",
    "x" * 3_000,
    "\u202eright",
    "__proto__",
]
BROKEN = ["%E0%A4%A", "%"]
ODD = [
    "#/runs/r?at=abc", "#/runs/r?at=-1", "#/runs/r?at=1e99", "#/runs/r?with=r", "#/runs/r?with=nobody",
    "#/runs/nobody?with=r", "#/runs/r?q=seq:x..y", "#/runs/r?q=%5B(*", "#/journal?from=abc", "#/journal?from=-5",
    "#/journal?from=99999999999999999999", "#/journal?where=%00", "#/reactions/many?at=abc", "#/tasks?status=nonsense",
    "#/tasks?reaction=%2F", "#/outbox?status=x", "#/lake?table=none", "#/bananas", "#/runs/r/s/t", "#//", "#?",
]  # fmt: skip
LARGE = 70
PATHS = {
    "reactions": ("**/reactions", 429, '{"detail": "too much at once", "code": "limit_reached"}', "Too much at once."),
    "tasks": ("**/tasks?*", 503, '{"detail": "the store is away", "code": "unavailable"}', "The store is away."),
    "lake": ("**/lake", 502, "<html><b>Bad Gateway</b></html>", "The server answered 502."),
    "system": ("**/ready", 200, "<html><b>a proxy's page</b></html>", "another server answered"),
}
AFTER = {"reactions": "many", "tasks": "/many/", "lake": "no lake yet", "system": "ready"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    """A server with very many dead tasks, and a reaction that is hard to read."""
    folder = tmp_path_factory.mktemp("strained")
    url = f"sqlite:///{folder}/tape.db"
    anyio.run(partial(fill_with_extremes, url))
    with sqlite3.connect(folder / "tape.db") as database:
        database.execute("UPDATE tape_tasks SET status = 5, last_error = ?", ["🜁" * MAX_ERROR])
    with TapeServer(folder, url) as server:
        yield server


async def fill_with_extremes(url: str) -> None:
    async with opened(url) as (store, journal):
        await store.reactions.register(Reaction(reaction_id="many", subject_pattern="/many/*"))
        await store.reactions.register(Reaction(reaction_id="long", subject_pattern="/many/*", predicate_cel=LONG))
        for first in range(0, MANY, 500):
            events = [Event(run_id="r", subject=f"/many/{n}", payload={"n": n}) for n in range(first, first + 500)]
            await journal.append(events, open=True)
        await catch_up(Matcher(store))


@pytest.fixture
async def screen(page: Page, server: TapeServer) -> AsyncIterator[Screen]:
    screen = Screen(page, server.url)
    yield screen
    assert screen.console_errors == []


async def test_any_number_of_dead_tasks_is_replayed(screen: Screen, server: TapeServer) -> None:
    await screen.open("#/tasks?status=dlq")
    await screen.shows("These are the newest 200")

    await screen.page.get_by_role("button", name="Replay all dead").click()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Replay").click()

    await screen.shows("No dead tasks", DEADLINE_S)
    with server.client() as http:
        assert http.get("/tasks", params={"status": "dlq", "limit": 1}).json()["tasks"] == []


@pytest.mark.parametrize("size", ["wide", "phone"])
async def test_a_very_long_predicate_fits_its_window(screen: Screen, server: TapeServer, size: str) -> None:
    page = screen.page
    await resize(page, size)
    assert MAX_TEXT_BYTES - 200 < len(LONG) <= MAX_TEXT_BYTES

    heights = {}
    for place in ("#/reactions", "#/reactions/long?at=3"):
        await screen.open(place)
        await expect(page.locator("td a, .explanation").first).to_be_visible()
        assert await sticking(page) == []
        heights[place] = await page.evaluate("document.querySelector('.inner').scrollHeight")

    assert heights["#/reactions"] < 1_000 and heights["#/reactions/long?at=3"] < 60_000


async def test_a_name_of_any_kind_is_answered_and_nothing_breaks(screen: Screen) -> None:
    await screen.open()
    for view in ("runs", "reactions", "tasks", "outbox"):
        for name in [*map(partial(quote, safe=""), NAMES), *BROKEN]:
            await screen.page.evaluate("place => location.hash = place", f"#/{view}/{name}")
            await expect(screen.page.locator("h1, .empty b").first).to_be_attached()
            assert await sticking(screen.page) == []


async def test_an_odd_address_is_answered_and_nothing_breaks(screen: Screen) -> None:
    await screen.open()
    for place in ODD:
        await screen.page.evaluate("place => location.hash = place", place)
        await expect(screen.page.locator("h1, .empty").first).to_be_attached()
        assert await sticking(screen.page) == []


async def test_a_list_that_is_gone_hears_a_late_scroll_and_nothing_breaks(screen: Screen, server: TapeServer) -> None:
    with server.client() as http:
        open_run(http, "left")
        publish(http, "left", [{"payload": 1}])
    await screen.open("#/runs/left")
    await expect(screen.row(1)).to_be_visible()

    await screen.page.evaluate("() => { window.left = document.querySelector('.list'); location.hash = '#/tasks' }")
    await expect(screen.page.locator(".list")).to_have_count(0)

    await screen.page.evaluate("() => window.left.dispatchEvent(new Event('scroll'))")


async def test_a_page_keeps_the_newest_of_too_many_payloads(screen: Screen, server: TapeServer) -> None:
    with server.client() as http:
        open_run(http, "large")
        for _ in range(LARGE // 7):
            publish(http, "large", [{"payload": {"text": "x" * 1_000_000}}] * 7)
    await screen.open("#/runs/large")

    await expect(screen.row(LARGE)).to_be_visible(timeout=DEADLINE_S * 1000)
    assert await screen.page.locator(".bar .quiet").inner_text() != f"{LARGE} events"


async def test_a_server_that_refuses_for_a_while_is_asked_again(screen: Screen, server: TapeServer) -> None:
    """All views at once: each takes its time until it asks again."""
    screens = {view: Screen(await screen.page.context.new_page(), server.url) for view in PATHS}

    async with anyio.create_task_group() as tasks:
        for view, each in screens.items():
            tasks.start_soon(is_asked_again, each, view)

    assert {view: each.console_errors for view, each in screens.items() if each.console_errors} == {}


async def is_asked_again(screen: Screen, view: str) -> None:
    path, status, text, words = PATHS[view]
    await screen.page.route(path, partial(refuse, text, status=status))
    await screen.open(f"#/{view}")
    await screen.shows(words)

    await screen.page.unroute_all()

    await expect(screen.page.get_by_role("main")).to_contain_text(AFTER[view], timeout=DEADLINE_S * 1000)


async def refuse(text: str, route: Route, *, status: int) -> None:
    await route.fulfill(status=status, body=text)
