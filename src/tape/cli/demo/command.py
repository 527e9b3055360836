"""`tape demo`: one journal in use, for about a minute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from tape.cli.demo.report import Report
    from tape.cli.demo.server import DemoServer
    from tape.core.ports import Store


@click.command()
@click.option("--seconds", default=7.0, show_default=True, type=click.FloatRange(2, 600), help="How long agents talk.")
@click.option("--no-lake", is_flag=True, help="Leave out Spark.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Leave everything in this folder.")
@click.option("--keep", is_flag=True, help="Leave the console running, until interrupted.")
@shared
@click.pass_obj
def demo(choices: Choices, seconds: float, folder: Path | None, keep: bool, no_lake: bool) -> int:
    """Watch one journal at work, in about a minute.

    Four producers, two of them in processes of their own, and five readers: of a run, of a pattern, of a predicate, a
    slow one, and one that keeps reconnecting. A little world runs and is forked with one thing changed; a reaction
    ships orders, one of which dies and is replayed; an event comes out of a transaction; all of it goes through Spark
    into a lake and is drawn on a page. It ends by itself, with 0 if everything was as it should be.
    """
    with _home(choices.store, folder) as url, _lake(folder) as lake:
        report = run(
            partial(_demo, choices, DemoOptions(url, seconds, None if no_lake else lake, keep, folder is not None))
        )
    return 0 if report.is_kept else 1


class DemoOptions(NamedTuple):
    """The demo's store, duration and lake, and what stays afterwards."""

    url: str
    seconds: float
    lake: tuple[Path, Path] | None
    is_kept_running: bool
    is_left: bool


@contextmanager
def _home(store: str | None, folder: Path | None) -> Iterator[str]:
    """The store's URL; without --store or --folder it is temporary."""
    from tape.core.errors import UsageError

    if store is not None:
        if not store.startswith("sqlite:"):
            raise UsageError(f"the demo's processes share a file: give it sqlite:///file.db, not {store!r}")
        yield store
    elif folder is not None:
        yield f"sqlite:///{quote(str(folder.absolute() / 'tape.db'))}"
    else:
        with TemporaryDirectory(prefix="tape-demo-") as passing:
            yield f"sqlite:///{quote(passing)}/tape.db"


@contextmanager
def _lake(folder: Path | None) -> Iterator[tuple[Path, Path]]:
    """The lake's folder and its page; the page is kept in any case, so that the user can open it."""
    import os

    from tape.cli.demo.lake import PAGE
    from tape.settings import Settings

    if folder is not None:
        yield folder.absolute() / "lake", folder.absolute() / PAGE
        return
    with TemporaryDirectory(prefix="tape-demo-") as passing:
        yield Path(passing) / "lake", Settings.read(os.environ).data.absolute() / "demo" / PAGE


async def _demo(choices: Choices, options: DemoOptions) -> Report:
    from tape import compose
    from tape.cli.demo.server import serving

    _, is_unsafe = choices.location()
    async with (
        compose.open_store(options.url, unsafe_durability=is_unsafe) as store,
        serving(options.url, options.lake[0] if options.lake else None) as server,
    ):
        report = await _run_parts(choices, options, store, server)
        _write(report, choices, options, server)
        if options.is_kept_running and server.url:
            await _until_interrupted()
    return report


async def _run_parts(choices: Choices, options: DemoOptions, store: Store, server: DemoServer) -> Report:
    from tape import compose
    from tape.cli.demo import (
        fork as demo_fork,
        lake as demo_lake,
        outbox as demo_outbox,
        server as demo_server,
        work as demo_work,
    )
    from tape.cli.demo.streams import StreamDemo
    from tape.cli.journal import audit
    from tape.store.sqlite.location import Location

    async with compose.run_journal(store) as journal:
        stream_demo = StreamDemo(journal, options.url, await journal.head(), is_quiet=choices.is_json)
        report = await stream_demo.run(options.seconds)
        report = report.with_fork(await demo_fork.play(journal, store.runs, stream_demo.prefix))
        report = report.with_work(await demo_work.run(store, journal, stream_demo.prefix))
        file = Location.parse(options.url, False).path
        report = report.with_outbox(await demo_outbox.run(journal, options.url, str(file)))
        if options.lake is not None:
            order = demo_lake.Order(options.url, *options.lake, is_quiet=choices.is_json)
            report = report.with_lake(await demo_lake.run(store, order, report.fork))
    if server.url:
        report = report.with_check(await demo_server.check(server, await _expected(store, report)))
    return report.audited(await audit(store, lambda fault: None))


async def _expected(store: Store, report: Report) -> dict[str, tuple[str, int]]:
    """What the server must return for each path: the name of a list and its length."""
    from tape.bus.every_run import every_run
    from tape.core.run_query import RunQuery

    assert report.work is not None
    runs = len(await every_run(store.runs, RunQuery()))
    tasks = len(await store.tasks.listed(reaction_id=report.work.reaction_id))
    expected = {"/runs": ("runs", runs), f"/tasks?reaction_id={report.work.reaction_id}": ("tasks", tasks)}
    if report.lake is not None and report.lake.page is not None:
        from tape.lake.derived_tables import NAMES

        expected["/lake/tables"] = ("tables", len(NAMES))
    return expected


async def _until_interrupted() -> None:
    import os
    from asyncio import get_running_loop

    import anyio

    from tape.work.stop_signals import StopSignals

    loop, stopped = get_running_loop(), anyio.Event()
    with StopSignals(lambda number: loop.call_soon_threadsafe(stopped.set), lambda number: os._exit(128 + number)):
        await stopped.wait()


def _write(report: Report, choices: Choices, options: DemoOptions, server: DemoServer) -> None:
    from tape.cli.demo import report as demo_report

    if choices.is_json:
        output.write_json({**demo_report.as_json(report), "url": server.url if options.is_kept_running else None})
    else:
        _write_story(report)
        output.write()
        _write_links(report, choices, options, server)
    output.flush()


def _write_story(report: Report) -> None:
    from tape.cli.demo import (
        fork as demo_fork,
        lake as demo_lake,
        outbox as demo_outbox,
        report as demo_report,
        work as demo_work,
    )

    if report.fork is not None:
        demo_fork.write(report.fork)
    if report.work is not None:
        demo_work.write(report.work)
    if report.outbox is not None:
        demo_outbox.write(report.outbox)
    if report.lake is not None:
        demo_lake.write(report.lake)
    demo_report.write(report)


def _write_links(report: Report, choices: Choices, options: DemoOptions, server: DemoServer) -> None:
    """Where to look at the results: the page, and the console while it runs."""
    if report.lake is not None and report.lake.page is not None:
        output.write(f"The report: {output.paint(output.escape(report.lake.page.as_uri()), 'bold')}")
    if options.is_kept_running and server.url:
        output.write(f"The console: {output.paint(server.url, 'bold')}/")
        output.table(_links(report, server))
        output.write("It runs until you press Ctrl-C.")
    elif choices.store or options.is_left:
        output.write(f"The console: tape serve --store '{options.url}', then http://127.0.0.1:7880/")
    else:
        output.write("The console: make demo KEEP=1 (or tape demo --keep) leaves it running.")


def _links(report: Report, server: DemoServer) -> Iterator[tuple[str, str]]:
    if report.fork is not None:
        yield "the fork beside its parent", server.link(f"runs/{report.fork.diff.other}?with={report.fork.diff.one}")
    if report.work is not None:
        yield "the reaction", server.link(f"reactions/{report.work.reaction_id}")
        yield "the task that died", server.link(f"tasks/{report.work.task_id}")
    if report.outbox is not None:
        yield "the event of the transaction", server.link(f"outbox/{report.outbox.event_id}")
    if report.lake is not None and report.lake.page is not None:
        yield "the lake", server.link("lake")
