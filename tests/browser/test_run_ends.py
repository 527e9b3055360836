"""The end of a run in a browser: EventSource stops reconnecting, and the console shows no other end."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.arena_events import open_run, publish
from tests.browser.screen import Screen, serve
from tests.server.server import TapeServer
from tests.servers.gateway import Gateway, gateway

CLOSED = 2
READ = """runId => {
    window.heard = []
    window.source = new EventSource(`/events?run_id=${runId}`)
    for (const name of ["message", "run_end"])
        source.addEventListener(name, event => heard.push(name === "message" ? JSON.parse(event.data).data : name))
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    with serve(tmp_path_factory.mktemp("ends")) as server:
        yield server


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


@pytest.fixture
async def between(server: TapeServer) -> AsyncIterator[Gateway]:
    async with gateway(server.port) as between:
        yield between


async def heard(page: Page, *events: object) -> None:
    await page.wait_for_function("want => JSON.stringify(heard) === JSON.stringify(want)", arg=[*events])


async def test_an_event_source_comes_back_from_a_clean_end_and_stops_at_the_end_of_the_run(
    page: Page, http: httpx.Client, between: Gateway
) -> None:
    open_run(http, "native")
    publish(http, "native", [{"payload": 1}])
    await page.goto(f"http://127.0.0.1:{between.port}/health")
    await page.evaluate(READ, "native")
    await heard(page, 1)

    between.end_streams()
    publish(http, "native", [{"payload": 2}])
    await heard(page, 1, 2)
    http.post("/runs/native/close")
    await page.wait_for_function(f"source.readyState === {CLOSED}")

    assert await page.evaluate("heard") == [1, 2, "run_end"]
    assert between.statuses == [200, 200, 204]


async def test_an_event_source_of_a_run_without_events_stops_too(
    page: Page, http: httpx.Client, between: Gateway
) -> None:
    open_run(http, "silent")
    http.post("/runs/silent/close")
    await page.goto(f"http://127.0.0.1:{between.port}/health")

    await page.evaluate(READ, "silent")
    await page.wait_for_function(f"source.readyState === {CLOSED}")

    assert await page.evaluate("heard") == ["run_end"] and between.statuses == [200, 204]


async def test_a_page_that_subscribes_again_reads_a_run_that_was_opened_again(
    page: Page, http: httpx.Client, between: Gateway
) -> None:
    open_run(http, "again")
    publish(http, "again", [{"payload": 1}])
    http.post("/runs/again/close")
    await page.goto(f"http://127.0.0.1:{between.port}/health")
    await page.evaluate(READ, "again")
    await page.wait_for_function(f"source.readyState === {CLOSED}")

    open_run(http, "again")
    publish(http, "again", [{"payload": 2}])
    await page.evaluate(READ, "again")

    await heard(page, 1, 2)


async def test_the_console_comes_back_from_a_clean_end(page: Page, http: httpx.Client, between: Gateway) -> None:
    screen = Screen(page, f"http://127.0.0.1:{between.port}")
    open_run(http, "shown")
    publish(http, "shown", [{"payload": "first"}])
    await screen.open("#/runs/shown")
    await screen.status("live")

    assert between.end_streams() > 0
    publish(http, "shown", [{"payload": "second"}])

    await expect(screen.row(2)).to_contain_text("second")
    await screen.status("live")
    await expect(screen.rows).to_have_count(2)
    assert screen.console_errors == []


async def test_the_console_shows_the_end_of_a_run_and_goes_on_when_it_is_opened_again(
    page: Page, http: httpx.Client, between: Gateway
) -> None:
    screen = Screen(page, f"http://127.0.0.1:{between.port}")
    open_run(http, "reopened")
    publish(http, "reopened", [{"payload": "first"}])
    http.post("/runs/reopened/close")
    await screen.open("#/runs/reopened?at=1")
    await screen.status("complete")

    open_run(http, "reopened")
    publish(http, "reopened", [{"payload": "second"}])

    await expect(screen.row(2)).to_contain_text("second")
    await screen.status("live")


async def test_two_runs_side_by_side_go_on_when_they_are_opened_again(
    page: Page, http: httpx.Client, between: Gateway
) -> None:
    screen = Screen(page, f"http://127.0.0.1:{between.port}")
    for run_id in ("left", "right"):
        open_run(http, run_id)
        publish(http, run_id, [{"payload": "first"}])
        http.post(f"/runs/{run_id}/close")
    await screen.open("#/runs/right?with=left")
    await expect(page.locator(".heads [role=status]")).to_have_text(["complete", "complete"])

    for run_id in ("left", "right"):
        open_run(http, run_id)
        publish(http, run_id, [{"payload": f"second of {run_id}"}])

    await expect(page.locator(".pair.heads ~ * .pair").last).to_contain_text("second of right")
    await expect(page.locator(".heads [role=status]")).to_have_text(["live", "live"])
    assert screen.console_errors == []
