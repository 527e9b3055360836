"""The views of reactions, tasks, outbox, lake and system on a filled store."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.sample_store import ORDERS, SHIP, fill_store
from tests.browser.screen import Screen, serve
from tests.server.server import TapeServer

EMPTY = {"reactions": "No reactions yet", "tasks": "No tasks yet", "outbox": "has no outbox", "lake": "has no lake"}


@pytest.fixture(scope="module")
def run_id(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> str:
    return anyio.run(partial(fill_store, f"sqlite:///{folder}/tape.db", folder / "lake"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("views")


@pytest.fixture(scope="module")
def server(folder: Path, run_id: str) -> Iterator[TapeServer]:
    with TapeServer(folder, f"sqlite:///{folder}/tape.db") as server:
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


async def test_every_view_is_reached_from_the_top_and_by_its_number(screen: Screen) -> None:
    await screen.open()
    await expect(screen.page).to_have_title("Runs · Tape")

    for number, title in enumerate(("Runs", "Live", "Reactions", "Tasks", "Outbox", "Lake", "System"), 1):
        link = screen.page.get_by_label("views").get_by_role("link", name=title)
        if number % 2 == 0:
            await link.click()
        else:
            await screen.page.keyboard.press(str(number))
        await expect(link).to_have_attribute("aria-current", "page")
        await expect(screen.page).to_have_title(f"{title} · Tape")


async def test_reactions_show_their_lag_and_errors(screen: Screen) -> None:
    await screen.open("#/reactions")

    await expect(screen.page.get_by_role("row").filter(has_text="demo.idle")).to_contain_text("paused: an order")
    await expect(screen.page.get_by_role("row").filter(has_text="demo.errs")).to_contain_text(str(ORDERS))
    await expect(screen.page.get_by_role("row").filter(has_text="payload.amount >= 20")).to_contain_text("matching")


async def test_a_reaction_is_paused_with_a_reason_and_resumed(screen: Screen, http: httpx.Client) -> None:
    await screen.open(f"#/reactions/{SHIP}")

    await screen.page.get_by_role("button", name="Pause").click()
    await screen.page.get_by_label("Why").fill("lunch")
    await screen.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await screen.shows("paused: lunch")
    await expect(screen.page.get_by_role("button", name="Resume")).to_be_focused()
    paused = http.get(f"/reactions/{SHIP}").json()["paused"]
    await screen.page.get_by_role("button", name="Resume").click()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Resume").click()

    await screen.shows("matching")
    assert (paused, http.get(f"/reactions/{SHIP}").json()["paused"]) == ("lunch", "")


async def test_a_reaction_explains_why_an_entry_became_a_task_or_not(screen: Screen, http: httpx.Client) -> None:
    done = http.get("/tasks", params={"status": "done"}).json()["tasks"][0]
    await screen.open(f"#/reactions/{SHIP}?at={done['source_global_seq']}")
    await screen.shows("It became a task.")

    await screen.page.get_by_label("Position in the journal").fill("1")
    await screen.page.get_by_role("button", name="Explain").click()

    await screen.shows("The subject does not fit.")
    await screen.page.get_by_text("The same as commands").click()
    await screen.shows("tape reaction dry-run --subject '/orders/*' --where 'payload.amount >= 20'")


async def test_a_dead_task_is_shown_and_replayed_after_confirmation(screen: Screen, http: httpx.Client) -> None:
    await screen.open("#/tasks?status=dlq")
    await screen.page.get_by_role("link", name="/orders/3").click()
    await screen.shows("no such street: an order")
    await expect(screen.page.get_by_label("payload")).to_contain_text('"amount": 30')

    await screen.page.get_by_role("button", name="Replay").click()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert len(http.get("/tasks", params={"status": "dlq"}).json()["tasks"]) == 2
    await screen.page.get_by_role("button", name="Replay").click()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Replay").click()

    await screen.shows("pending")
    await screen.shows("replayed")
    assert len(http.get("/tasks", params={"status": "dlq"}).json()["tasks"]) == 1


async def test_the_chosen_dead_tasks_are_replayed_together(screen: Screen, http: httpx.Client) -> None:
    await screen.open(f"#/tasks?reaction={SHIP}")
    await screen.page.get_by_label("choose").first.check()

    await screen.page.get_by_role("button", name="Replay chosen").click()
    await expect(screen.page.get_by_role("heading", name="Replay one dead task?")).to_be_visible()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Replay").click()

    await expect(screen.page.get_by_label("choose")).to_have_count(0)
    assert http.get("/tasks", params={"status": "dlq"}).json()["tasks"] == []


async def test_a_failed_row_of_the_outbox_is_shown_and_replayed(screen: Screen, http: httpx.Client) -> None:
    await screen.open("#/outbox?status=failed")
    await screen.page.get_by_role("link", name="order an order").click()
    await screen.shows("no such account an order")
    await screen.shows("orders.seen")

    await screen.page.get_by_role("button", name="Replay").click()
    await screen.page.get_by_role("dialog").get_by_role("button", name="Replay").click()

    await expect(screen.page.locator(".about .status")).to_contain_text("pending")
    assert http.get("/outbox?status=failed").json()["rows"] == []


async def test_the_lake_shows_its_entries_and_tables_and_runs_queries(screen: Screen) -> None:
    await screen.open("#/lake?table=tool_usage")
    await expect(screen.page.get_by_role("img", name="cold: 1 to")).to_be_visible()
    await screen.shows("entries")
    await expect(screen.page.get_by_label("tool_usage: n_ok by tool").get_by_text("gather")).to_be_visible()

    await screen.page.get_by_label("One SELECT").fill("SELECT count(*) AS n, 'whole' AS word FROM journal")
    await screen.page.keyboard.press("Control+Enter")
    await expect(screen.page.get_by_role("cell", name="whole")).to_be_visible()
    await screen.page.get_by_label("One SELECT").fill("DROP VIEW journal")
    await screen.page.get_by_role("button", name="Ask", exact=True).click()

    await expect(screen.page.get_by_role("alert")).to_contain_text("one SELECT")


async def test_the_system_view_shows_throughput_and_readiness(screen: Screen, http: httpx.Client) -> None:
    await screen.open("#/system")
    await screen.status("ready")
    http.post("/runs", json={"run_id": "busy"})

    http.post("/runs/busy/events", json=[{"payload": n} for n in range(100)]).raise_for_status()

    chart = screen.page.get_by_role("img", name="Events appended a second")
    await expect(chart.locator("polyline")).to_have_count(1)
    await expect(chart).not_to_have_attribute("aria-label", "Events appended a second: now 0, at most 1")
    await screen.shows("/metrics")


async def test_a_run_is_scrubbed_along_its_tracks(screen: Screen, run_id: str) -> None:
    await screen.open(f"#/runs/{run_id}")
    strip = screen.page.get_by_role("slider", name="timeline of")
    await expect(strip).to_have_attribute("aria-valuemax", "18")
    box = await strip.bounding_box()
    assert box is not None and box["height"] == 56 + 3 * 16

    await screen.page.mouse.move(box["x"] + 66, box["y"] + 20)
    await screen.page.mouse.down()
    first = await strip.get_attribute("aria-valuenow")
    await screen.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20, steps=8)
    await screen.page.mouse.up()

    await expect(strip).to_have_attribute("aria-valuenow", "18")
    assert first == "1"
    await screen.page.keyboard.press("k")
    await expect(strip).to_have_attribute("aria-valuenow", "17")


async def test_a_fork_sets_the_policy_for_effects(screen: Screen, run_id: str) -> None:
    await screen.open(f"#/runs/{run_id}?at=9")
    await screen.page.get_by_role("button", name="Fork here").click()
    await screen.page.get_by_label("Effects").select_option("stub")
    await screen.page.get_by_label("Mutation").fill('{"amount": 0}')

    asked = {"parent_run_id": run_id, "at_seq": 9, "n_turns": 10, "effects": "stub", "mutation": {"amount": 0}}
    async with screen.page.expect_response("**/forks") as answered:
        await screen.page.get_by_role("button", name="Fork", exact=True).click()

    assert (await (await answered.value).json())["at_seq"] == 9
    assert (await answered.value).request.post_data_json == asked
    await expect(screen.page.get_by_role("heading", name="Side by side")).to_be_visible()


async def test_the_tail_is_paused_and_goes_on(screen: Screen, http: httpx.Client) -> None:
    http.post("/runs", json={"run_id": "paused"})
    await screen.open("#/journal?subject=/flow/**")
    await screen.status("live")
    publish = partial(http.post, "/runs/paused/events")
    publish(json=[{"payload": n, "subject": "/flow/1"} for n in range(60)])
    await screen.shows("60 events")

    await screen.page.get_by_role("button", name="Pause").click()
    before = await screen.page.get_by_role("listbox").evaluate("one => one.scrollTop")
    publish(json=[{"payload": n, "subject": "/flow/2"} for n in range(60)])
    await screen.shows("120 events")

    assert await screen.page.get_by_role("listbox").evaluate("one => one.scrollTop") == before
    await screen.page.get_by_role("button", name="Go on").click()
    await expect(screen.rows.last).to_contain_text("59")


async def test_no_number_is_rounded_on_its_way(screen: Screen, http: httpx.Client) -> None:
    await screen.open("#/lake")
    await screen.page.get_by_label("One SELECT").fill("SELECT 9007199254740993 AS n")
    await screen.page.get_by_role("button", name="Ask", exact=True).click()
    await expect(screen.page.get_by_role("cell", name="9007199254740993")).to_be_visible()
    letter = next(row for row in http.get("/outbox").json()["rows"] if row["payload"].get("large"))

    await screen.open(f"#/outbox/{letter['event_id']}")

    await expect(screen.page.get_by_label("payload")).to_contain_text("9007199254740993")


async def test_a_server_that_is_down_leaves_the_old_data_with_a_notice(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path) as server, server.client() as http:
        http.put("/reactions/lasting", json={"subject_pattern": "/a/**"}).raise_for_status()
        screen = Screen(page, server.url)
        await screen.open("#/reactions")
        await screen.shows("lasting")
        server.kill()
        await screen.shows("The data shown is older.")
        await screen.shows("lasting")

    with serve(tmp_path, "--http", f"127.0.0.1:{server.port}"):
        await expect(page.get_by_text("The data shown is older.")).to_have_count(0)


async def test_a_store_without_a_feature_shows_an_empty_state(page: Page, tmp_path: Path) -> None:
    with TapeServer(tmp_path, "memory://") as server:
        screen = Screen(page, server.url)

        for view, words in EMPTY.items():
            await screen.open(f"#/{view}")
            await screen.shows(words)

        assert screen.console_errors == []
