"""Hostile texts in the views of work, outbox and lake: none runs, loads or restyles anything."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio
import httpx
import pytest
from playwright.async_api import Page, Request, expect

from tape.compose import open_backend
from tape.core.event import Event
from tape.core.reaction import MAX_NAME, Reaction
from tape.lake.log import DeltaLog
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.outbox import TerminalHandlerError, migrate
from tape.work.answers import Dead
from tape.work.handler import handler
from tests.browser.hostile import TEXTS
from tests.browser.screen import Screen
from tests.browser.test_page_errors import WATCH
from tests.lake.local_lake import fill, opened
from tests.lake.table_files import write_table
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event
from tests.server.server import TapeServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TapeServer]:
    url = f"sqlite:///{tmp_path}/tape.db"
    anyio.run(partial(afflict, url, tmp_path / "lake"))
    with TapeServer(tmp_path, url) as server:
        yield server


async def afflict(url: str, lake: Path) -> None:
    """Each text as a reaction's name and pause, as a task's payload and error, in an outbox row, and in a table."""
    await migrate(url)
    await misreact(url)
    await misdeliver(BusinessDatabase("sqlite", url))
    async with opened(url) as (store, _):
        await fill(store, DeltaLog(lake / "journal"), url)
    write_table(lake, "tool_usage", [{"run_id": text, "tool": text, "n_ok": 1} for text in TEXTS], 1)


async def misreact(url: str) -> None:
    def refuse(order: object) -> None:
        raise Dead(TEXTS[order.payload["n"]])  # type: ignore[attr-defined]

    rules = tuple(Reaction(reaction_id=f"x.{n}", name=text[:MAX_NAME]) for n, text in enumerate(TEXTS))
    work = Reaction(reaction_id="x.work", subject_pattern="/x/*")
    async with open_backend(url) as backend:
        config = WorkerConfig(handlers={"x.work": handler(refuse)}, reactions=(work, *rules))
        dispatcher = Dispatcher(backend.store, config, backend.journal)
        await dispatcher.register()
        for rule, text in zip(rules, TEXTS, strict=True):
            await backend.store.reactions.pause(rule.reaction_id, text[:MAX_NAME])
        events = [Event(run_id="x", subject=f"/x/{n}", payload={"n": n, text: text}) for n, text in enumerate(TEXTS)]
        await backend.journal.append(events, open=True)
        await dispatcher.run_once()


async def misdeliver(business: BusinessDatabase) -> None:
    await business.run("CREATE TABLE orders (n INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')")
    events = [make_event(n, event_type=text, source=text, payload={"n": n, "t": text}) for n, text in enumerate(TEXTS)]
    await business.publish(*events)
    seen = RecordingHandler(lambda event: TerminalHandlerError(str(event.payload["t"])))
    async with business.listening({"x.handler": seen}):
        await business.wait_until("failed", len(TEXTS))


async def test_no_text_of_a_user_runs_loads_or_restyles_anything(page: Page, server: TapeServer) -> None:
    screen, asked, dialogs = Screen(page, server.url), list[Request](), list[object]()
    page.on("request", lambda request: asked.append(request))  # playwright marks what it calls
    page.on("dialog", lambda dialog: dialogs.append(dialog))
    await page.add_init_script(f"({WATCH})()")

    with server.client() as http:
        for business in places(http):
            await screen.open(business)
            await expect(page.locator("h1")).not_to_have_text("")
            await expect(page.get_by_text(TEXTS[2]).first).to_be_attached()
    await ask(screen)

    assert dialogs == [] and screen.console_errors == []
    assert {httpx.URL(request.url).port for request in asked if request.url != "about:blank"} == {server.port}
    assert await page.evaluate("[window.hit, ({}).isHit, window.violations]") == [None, None, []]


def places(http: httpx.Client) -> Iterator[str]:
    """Every view that shows the third text, and views that are asked for by such a name."""
    tasks = http.get("/tasks", params={"status": "dlq"}).json()["tasks"]
    task = next(task for task in tasks if task["subject"] == "/x/2")
    letter = next(row for row in http.get("/outbox?status=failed").json()["rows"] if row["event_type"] == TEXTS[2])
    yield from ("#/reactions", "#/reactions/x.2", "#/tasks", f"#/tasks/{task['task_id']}", "#/outbox?status=failed")
    yield from (f"#/outbox/{letter['event_id']}", "#/lake?table=tool_usage")
    yield from (f"#/{view}/{quote(TEXTS[2], safe='')}" for view in ("reactions", "tasks", "outbox"))


async def ask(screen: Screen) -> None:
    """Questions whose answers, and whose refusals, hold such texts."""
    await screen.open("#/lake")
    for sql in (f"SELECT '{TEXTS[2]}' AS \"{TEXTS[0]}\", payload_json FROM journal", f"SELECT {TEXTS[4]}"):
        await screen.page.get_by_label("One SELECT").fill(sql)
        await screen.page.get_by_role("button", name="Ask", exact=True).click()
        await expect(screen.page.locator(".answered, [role=alert]").last).to_contain_text(
            "onload" if "svg" in sql else "onerror"
        )
