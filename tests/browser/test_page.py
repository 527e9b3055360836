"""The console at `/` in a real browser on a real server."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.arena_events import arena_events, open_run, publish
from tests.browser.conftest import SHOTS
from tests.browser.screen import Screen, serve
from tests.server.server import TapeServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    with serve(tmp_path_factory.mktemp("page")) as server:
        yield server


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


@pytest.fixture
async def screen(page: Page, server: TapeServer) -> AsyncIterator[Screen]:
    """A tab on the page; a complaint in its console fails the test."""
    screen = Screen(page, server.url)
    yield screen
    assert screen.console_errors == []


async def test_runs_are_listed_with_their_status_and_count(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "listed-live", "Seen from the side")
    publish(http, "listed-live", [{"payload": n} for n in range(3)])
    open_run(http, "listed-ended")
    http.post("/runs/listed-ended/close")

    await screen.open()

    live = screen.page.get_by_role("link", name="Seen from the side")
    await expect(live).to_contain_text("3")
    await expect(live.get_by_role("img", name="running")).to_be_visible()
    await expect(
        screen.page.get_by_role("link", name="listed-ended").get_by_role("img", name="complete")
    ).to_be_visible()


async def test_the_search_finds_runs_by_label_and_id(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "sought-1", "A needle")
    open_run(http, "sought-2", "A haystack")
    await screen.open()

    await screen.page.get_by_label("search runs").fill("NEEDLE")

    await expect(screen.page.get_by_role("link", name="A needle")).to_be_visible()
    await expect(screen.page.get_by_role("link", name="A haystack")).to_have_count(0)


async def test_events_appear_live(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "flowing")
    await screen.open("#/runs/flowing")
    await screen.status("live")

    publish(http, "flowing", [{"type": "greeting", "payload": {"text": "hello there"}}])

    await expect(screen.row(1)).to_contain_text("hello there")
    await expect(screen.row(1)).to_contain_text("greeting")


async def test_a_run_that_ends_is_shown_as_complete_and_may_go_on(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "ending")
    publish(http, "ending", [{"payload": "one"}])
    await screen.open("#/runs/ending")
    await screen.status("live")

    http.post("/runs/ending/close")
    await screen.status("complete")
    open_run(http, "ending")
    publish(http, "ending", [{"payload": "two"}])

    await expect(screen.row(2)).to_contain_text("two")


async def test_the_filter_keeps_what_is_asked_for(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "filtered")
    publish(http, "filtered", arena_events(3))
    await screen.open("#/runs/filtered")
    await expect(screen.page.get_by_text("60 events")).to_be_visible()

    for text, count in (
        ("type:action", 9),
        ("/arena/ada", 18),
        ("turn:2", 20),
        ("-type:metric", 51),
        ("DARK type:metric", 9),
    ):
        await screen.page.get_by_label("filter events").fill(text)
        await expect(screen.page.get_by_text(f"{count} of 60")).to_be_visible()


async def test_a_type_is_chosen_by_its_chip(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "chips")
    publish(http, "chips", arena_events(1))
    await screen.open("#/runs/chips")

    await screen.page.get_by_role("button", name="llm_prompt 3").click()
    await screen.page.get_by_role("button", name="metric 3").click()

    await expect(screen.page.get_by_text("6 of 20")).to_be_visible()
    await expect(screen.page.get_by_label("filter events")).to_have_value("type:llm_prompt,metric")


async def test_a_payload_is_shown_with_every_digit(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "digits")
    publish(http, "digits", [{"payload": {"large": 9007199254740993, "lines": "one\ntwo"}}])
    await screen.open("#/runs/digits")

    await expect(screen.row(1)).to_contain_text("9007199254740993")
    await screen.row(1).click()

    payload = await screen.page.get_by_label("payload").inner_text()
    assert payload == '{\n  "large": 9007199254740993,\n  "lines": "one\n  two"\n}'


async def test_a_reload_resumes_at_the_same_event(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "resumed")
    publish(http, "resumed", arena_events(40))
    await screen.open("#/runs/resumed")
    await screen.page.get_by_label("filter events").fill("seq:400..410")
    await screen.row(404).click()
    await screen.page.get_by_label("filter events").fill("")
    await expect(screen.row(404)).to_be_visible()

    await screen.page.reload()

    await expect(screen.row(404)).to_have_attribute("aria-selected", "true")
    await expect(screen.row(404)).to_be_in_viewport()
    await expect(screen.page.get_by_label("event", exact=True)).to_contain_text("404 in the run")


async def test_a_reload_across_runs_shows_the_same_events_again(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "across")
    await screen.open("#/journal?subject=/across/**")
    await screen.status("live")
    publish(http, "across", [{"subject": f"/across/{n}", "payload": n} for n in range(5)])
    await expect(screen.rows).to_have_count(5)
    before = await screen.rows.all_inner_texts()

    await screen.page.reload()

    await expect(screen.rows).to_have_count(5)
    assert [row.split()[0] for row in await screen.rows.all_inner_texts()] == [row.split()[0] for row in before]


async def test_the_server_filters_across_runs_by_subject_and_predicate(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "asked")
    await screen.open("#/journal")
    await screen.page.get_by_label("Subject").fill("/asked/*")
    await screen.page.get_by_label("Where").fill('type == "wanted"')
    await screen.page.get_by_role("button", name="Apply").click()
    await screen.status("live")

    events = [("/asked/a", "wanted"), ("/asked/a", "other"), ("/other/a", "wanted"), ("/asked/b", "wanted")]
    publish(http, "asked", [{"subject": subject, "type": name, "payload": subject} for subject, name in events])

    await expect(screen.rows).to_have_count(2)
    await expect(screen.rows.last).to_contain_text("/asked/b")


async def test_a_refused_predicate_shows_the_reason(screen: Screen) -> None:
    await screen.open("#/journal?where=type%20%3D%3D")

    await screen.shows("The server refused this.")


async def test_ten_thousand_events_are_read_and_only_visible_rows_are_rendered(
    screen: Screen, http: httpx.Client
) -> None:
    open_run(http, "many")
    publish(http, "many", arena_events(200) * 2 + arena_events(100))
    await screen.open("#/runs/many")
    await expect(screen.page.get_by_text("10,000 events")).to_be_visible()

    most = await screen.page.evaluate(SCROLL)

    assert 0 < most < 80, "so many rows were in the page at once"


SCROLL = """async () => {
    const list = document.querySelector(".list")
    let most = 0
    for (let n = 0; n < 60; n++) {
        list.scrollTop = (n * 7919 * 34) % list.scrollHeight
        await new Promise(requestAnimationFrame)
        most = Math.max(most, document.querySelectorAll("[role=listbox] [role=option]").length)
    }
    return most
}"""


async def test_everything_can_be_done_with_keys(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "keys", "By hand")
    publish(http, "keys", arena_events(2))
    await screen.open()
    keyboard = screen.page.keyboard

    await screen.page.get_by_role("link", name="By hand").focus()
    await keyboard.press("Enter")
    await expect(screen.row(40)).to_be_visible()
    await keyboard.press("/")
    await keyboard.type("type:action")
    await expect(screen.page.get_by_text("6 of 40")).to_be_visible()
    await screen.page.get_by_role("listbox").focus()
    await keyboard.press("Home")
    await expect(screen.row(5)).to_have_attribute("aria-selected", "true")
    await keyboard.press("j")
    await expect(screen.row(10)).to_have_attribute("aria-selected", "true")
    await keyboard.press("f")
    await expect(screen.page.get_by_role("dialog")).to_contain_text("Fork after 10")
    await keyboard.press("Escape")
    await expect(screen.page.get_by_role("dialog")).to_have_count(0)
    await keyboard.press("Escape")
    await expect(screen.page.get_by_label("event", exact=True)).to_have_count(0)
    await keyboard.press("?")
    await expect(screen.page.get_by_role("dialog")).to_contain_text("first difference")


async def test_a_refused_fork_shows_the_reason_and_keeps_the_input(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "refused")
    publish(http, "refused", arena_events(1))
    await screen.open("#/runs/refused?at=7")
    await screen.page.get_by_role("button", name="Fork here").click()
    dialog = screen.page.get_by_role("dialog")

    await dialog.get_by_label("Mutation").fill("{not json")
    await dialog.get_by_role("button", name="Fork", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("not JSON")
    await dialog.get_by_label("Mutation").fill("")
    await dialog.get_by_label("Producer").fill("nobody-knows-it")
    await dialog.get_by_role("button", name="Fork", exact=True).click()

    await expect(dialog.get_by_role("alert")).to_contain_text("nobody-knows-it")
    await expect(dialog.get_by_label("Producer")).to_have_value("nobody-knows-it")


async def test_a_fork_is_shown_beside_its_parent_from_the_first_difference(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "parent", "The parent")
    publish(http, "parent", arena_events(6))
    await screen.open("#/runs/parent?at=40")
    await screen.page.get_by_role("button", name="Fork here").click()
    dialog = screen.page.get_by_role("dialog")
    await dialog.get_by_label("Producer").fill("arena")
    await dialog.get_by_label("Turns").fill("4")
    await dialog.get_by_label("Mutation").fill('{"food": 900}')
    await dialog.get_by_role("button", name="Fork", exact=True).click()

    await expect(screen.page.get_by_role("heading", name="Side by side")).to_be_visible()
    await expect(screen.page.locator(".about")).to_contain_text("40 inherited")
    await expect(screen.page.locator(".pair.first")).to_be_in_viewport()
    await expect(screen.page.locator(".pair.first .type")).to_have_text(["turn_start", "turn_start"])
    await expect(screen.page.locator(".pair.same").last).to_be_in_viewport()
    await screen.page.keyboard.press("d")
    await expect(screen.page.locator(".pair.first")).to_be_in_viewport()
    await expect(screen.page.get_by_label("both payloads")).to_contain_text("different")
    await screen.page.screenshot(path=SHOTS / "side-by-side.png")


async def test_a_child_links_to_its_parent(screen: Screen, http: httpx.Client) -> None:
    open_run(http, "origin")
    publish(http, "origin", arena_events(1))
    child = http.post("/forks", json={"parent_run_id": "origin", "at_seq": 12, "n_turns": 0}).json()["child_run_id"]

    await screen.open(f"#/runs/{child}")

    await screen.shows("Forked from")
    await expect(screen.page.locator(".row.inherited").first).to_be_visible()
    await screen.page.get_by_role("link", name="Side by side").click()
    await expect(screen.page.get_by_role("heading", name="Side by side")).to_be_visible()


async def test_a_missing_run_is_shown_when_it_is_opened(screen: Screen, http: httpx.Client) -> None:
    await screen.open("#/runs/not-yet")
    await screen.shows("not-yet")

    open_run(http, "not-yet")
    publish(http, "not-yet", [{"payload": "now"}])

    await expect(screen.row(1)).to_contain_text("now")
