"""The console under errors: hostile texts, many tabs, a slow page, a full or missing server."""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread
from playwright.async_api import Page, Request, expect

from tape.core.errors import NotFound, Unavailable
from tape.lake.cold.runs import cold_path
from tape.store.duckdb.connection import open_to_read
from tape.store.duckdb.events import Events
from tests.browser.arena_events import open_run, publish
from tests.browser.hostile import INVISIBLE, PROTOTYPES, TEXTS
from tests.browser.screen import Screen, serve
from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.reading import open_stream
from tests.server.server import TapeServer

TABS = 8
WATCH = """() => {
    window.violations = []
    addEventListener("securitypolicyviolation", ({violatedDirective}) => violations.push(violatedDirective))
}"""
EVICTED = re.compile(r"^tape_evictions_total{.*} [1-9]", re.MULTILINE)
BLOCK_UNTIL_EVICTED = """ms => {
    const end = performance.now() + ms
    const metrics = new XMLHttpRequest()
    do {
        metrics.open("GET", "/metrics", false)
        metrics.send()
    } while (performance.now() < end && !/^tape_evictions_total[{].*[}] [1-9]/m.test(metrics.responseText))
}"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TapeServer]:
    with serve(tmp_path) as server:
        yield server


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


async def test_no_text_of_a_producer_runs_loads_or_restyles_anything(
    page: Page, server: TapeServer, http: httpx.Client
) -> None:
    screen, asked, dialogs = Screen(page, server.url), list[Request](), list[object]()
    page.on("request", lambda request: asked.append(request))  # playwright marks what it calls
    page.on("dialog", lambda dialog: dialogs.append(dialog))
    await page.add_init_script(f"({WATCH})()")
    tell_hostile(http)

    await screen.open()
    await expect(page.get_by_text(TEXTS[0]).first).to_be_visible()
    await screen.open("#/runs/hostile")
    await look_at_everything(screen)
    await screen.open(
        f"#/runs/{httpx.URL(path='/' + TEXTS[2]).raw_path.decode()[1:]}?q=%3Cimg%20src%3Dx%20onerror%3Dhit%3D1%3E"
    )
    await screen.shows(TEXTS[2])

    assert dialogs == [] and screen.console_errors == []
    assert {httpx.URL(request.url).port for request in asked if request.url != "about:blank"} == {server.port}
    assert await page.evaluate("[window.hit, ({}).isHit, window.violations]") == [None, None, []]


def tell_hostile(http: httpx.Client) -> None:
    """Everywhere a producer's words go: payloads, keys, subjects, labels, clients and reasons."""
    open_run(http, "hostile", TEXTS[0])
    events: list[dict[str, object]] = [{"payload": {"text": text, text: [text]}} for text in TEXTS]
    events += [{"payload": text} for text in TEXTS]
    events += [{"payload": PROTOTYPES}, {"payload": {"text": INVISIBLE}}, {"payload": {"turn_num": 1, "html`": "${1}"}}]
    http.post(
        "/runs/hostile/events", json=events, headers={"x-client-id": "<script>window.hit=1</script>"}
    ).raise_for_status()
    for number, text in enumerate(TEXTS):
        open_run(http, f"labelled-{number}", text, started_at=text)
        http.post("/runs/hostile/events", json={"payload": 1, "subject": f"/x/{text.replace('/', '')}"})
    http.post("/forks", json={"parent_run_id": "hostile", "at_seq": 3, "reason": TEXTS[2]}).raise_for_status()


async def look_at_everything(screen: Screen) -> None:
    await expect(screen.page.get_by_role("listbox")).to_be_visible()
    await screen.page.keyboard.press("Home")
    await expect(screen.row(1)).to_have_attribute("aria-selected", "true")
    for seq in range(2, 2 * len(TEXTS) + 4):
        await screen.page.keyboard.press("j")
        await expect(screen.page.get_by_label("event", exact=True)).to_contain_text(f"{seq} in the run")
        if seq <= len(TEXTS):
            await expect(screen.page.get_by_label("payload")).to_contain_text(TEXTS[seq - 1])


async def test_invisible_characters_are_escaped(page: Page, server: TapeServer, http: httpx.Client) -> None:
    screen = Screen(page, server.url)
    open_run(http, "invisible")
    publish(http, "invisible", [{"payload": {"text": INVISIBLE}}])

    await screen.open("#/runs/invisible?at=1")

    await expect(page.get_by_label("payload")).to_contain_text("right\\u202etfel\\u200bzero\\u0007bell")
    await expect(screen.row(1)).to_contain_text("right\\u202etfel")


async def test_eight_tabs_over_six_connections_all_stay_usable(
    page: Page, server: TapeServer, http: httpx.Client
) -> None:
    for number in range(TABS):
        open_run(http, f"tab-{number}")
    pages = [page, *[await page.context.new_page() for _ in range(TABS - 1)]]
    screens = [Screen(tab, server.url) for tab in pages]
    for number, screen in enumerate(screens):
        await screen.open(f"#/runs/tab-{number}")

    for number in range(TABS):
        publish(http, f"tab-{number}", [{"payload": f"for tab {number}"}])

    for number, screen in enumerate(screens):
        await expect(screen.row(1)).to_contain_text(f"for tab {number}")
    await screens[-1].page.get_by_role("link", name="tab-0").click()
    await expect(screens[-1].row(1)).to_contain_text("for tab 0")
    assert sum([await is_live(screen) for screen in screens]) <= 4


async def is_live(screen: Screen) -> bool:
    return await screen.page.locator(".about .status").inner_text() == "live"


async def test_a_polling_tab_gets_the_slot_of_a_closed_one(page: Page, server: TapeServer, http: httpx.Client) -> None:
    open_run(http, "shared")
    others = [Screen(await page.context.new_page(), server.url) for _ in range(4)]
    for other in others:
        await other.open("#/runs/shared")
        await other.status("live")
    screen = Screen(page, server.url)
    await screen.open("#/runs/shared")
    await screen.status("polling every second")

    await others[0].page.close()

    await screen.status("live")


async def test_the_page_shows_that_the_server_is_down_and_reconnects(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path) as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "lost")
        publish(http, "lost", [{"payload": "before"}])
        await screen.open("#/runs/lost")
        await screen.status("live")
        server.kill()
        await screen.status("back in")
        await screen.shows("the server does not answer")

    with serve(tmp_path, "--http", f"127.0.0.1:{server.port}") as again, again.client() as http:
        publish(http, "lost", [{"payload": "after"}])

        await expect(screen.row(2)).to_contain_text("after")
        await screen.status("live")
        await expect(screen.rows).to_have_count(2)


async def test_the_page_shows_a_restart_and_reconnects(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path) as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "restarted")
        await screen.open("#/runs/restarted")
        await screen.status("live")

        await anyio.to_thread.run_sync(server.stop)
        await screen.shows("The server is restarting.")

    with serve(tmp_path, "--http", f"127.0.0.1:{server.port}") as again, again.client() as http:
        publish(http, "restarted", [{"payload": "again"}])
        await expect(screen.row(1)).to_contain_text("again")


def publish_until_evicted(http: httpx.Client, run_id: str) -> int:
    """Publishes until a reader is evicted, as sockets may hold many events; returns how many that took."""
    for count in range(1_000, 100_001, 1_000):
        publish(http, run_id, [{"payload": "x" * 2_000}] * 1_000)
        if EVICTED.search(http.get("/metrics").text):
            return count
    raise AssertionError("100,000 events evicted nobody")


async def test_an_evicted_page_shows_it_and_resumes(page: Page, server: TapeServer, http: httpx.Client) -> None:
    screen = Screen(page, server.url)
    open_run(http, "slow")
    await screen.open("#/runs/slow")
    await screen.status("live")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(page.evaluate, BLOCK_UNTIL_EVICTED, DEADLINE_S * 1000)
        count = await anyio.to_thread.run_sync(publish_until_evicted, http, "slow")

    await screen.shows("too slow and was evicted")
    await expect(page.get_by_text(f"{count:,} events")).to_be_visible()
    await screen.status("live")


async def test_a_gap_in_the_history_is_shown(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path, "--event-ring-size", "100", store="memory://") as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "short")
        publish(http, "short", [{"payload": n} for n in range(300)])

        await screen.open("#/runs/short")

        await screen.shows("History before 201 is gone.")
        await expect(page.get_by_text("100 events")).to_be_visible()


async def test_a_journal_that_was_replaced_is_shown_from_its_beginning(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path, store="memory://") as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "replaced")
        publish(http, "replaced", [{"payload": n} for n in range(5)])
        await screen.open("#/runs/replaced")
        await expect(screen.rows).to_have_count(5)

    options = ("--http", f"127.0.0.1:{server.port}")
    with serve(tmp_path, *options, store="memory://") as again, again.client() as http:
        open_run(http, "replaced")
        publish(http, "replaced", [{"payload": "new"}])

        await screen.shows("replaced by another one", 30)
        await expect(screen.rows).to_have_count(1)


async def test_a_run_that_is_opened_again_in_another_journal_is_followed(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path, store="memory://") as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "again")
        publish(http, "again", [{"payload": n} for n in range(5)])
        await screen.open("#/runs/again")
        await expect(screen.rows).to_have_count(5)
        await screen.status("live")
        await to_thread.run_sync(until, partial(is_kept, tmp_path, "again", 5), "the run is in its file")

    options = ("--http", f"127.0.0.1:{server.port}")
    with serve(tmp_path, *options, store="memory://") as again, again.client() as http:
        await screen.status("complete")
        await expect(screen.rows).to_have_count(5)
        open_run(http, "again")
        publish(http, "again", [{"payload": "new"}])

        await screen.shows("replaced by another one")
        await expect(screen.rows).to_have_count(1)
        await expect(screen.row(1)).to_contain_text("new")
        await screen.status("live")


def is_kept(folder: Path, run_id: str, last_seq: int) -> bool:
    """Whether a run's file has it up to a seq; the server closes the file when nothing comes."""
    try:
        with closing(open_to_read(cold_path(folder, run_id))) as connection:
            return any(run.last_seq == last_seq for run in Events(connection).runs())
    except (NotFound, Unavailable):
        return False


async def test_a_page_over_the_subscriber_limit_retries(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path, "--max-subscribers", "1") as server, server.client() as http:
        screen = Screen(page, server.url)
        open_run(http, "crowded")
        publish(http, "crowded", [{"payload": "seen"}])
        with server.client() as other, open_stream(other, "/events", run_id="crowded") as reader:
            reader.ids(1)
            await screen.open("#/runs/crowded")
            await screen.status("back in")

        await expect(screen.row(1)).to_contain_text("seen")
        await screen.status("live")
