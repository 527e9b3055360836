"""`tape demo`: producers and readers share one journal, for some seconds, before your eyes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from tape.cli.demo_report import Report


@click.command()
@click.option("--seconds", default=7.0, show_default=True, type=click.FloatRange(2, 600), help="How long it takes.")
@click.option("--no-lake", is_flag=True, help="Leave out Spark.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep the journal in this folder.")
@shared
@click.pass_obj
def demo(choices: Choices, seconds: float, keep: Path | None, no_lake: bool) -> int:
    """Watch producers and readers share one journal.

    Four producers, two of them in processes of their own, and five readers: of a run, of a pattern, of a predicate, a
    slow one, and one that keeps reconnecting. Then a little world runs and is forked with one thing changed, and all
    of it goes through Spark into a lake and is drawn on a page. It ends by itself, with 0 if everybody got exactly
    what was theirs.
    """
    with _home(choices.store, keep) as url, _lake(keep) as lake:
        report = run(partial(_demo, choices, url, seconds, None if no_lake else lake))
        _say(report, choices, url if choices.store or keep else None)
    return 0 if report.is_kept else 1


@contextmanager
def _home(store: str | None, keep: Path | None) -> Iterator[str]:
    """Where the journal lives: unless that was said, nowhere for long."""
    from tape.core.errors import UsageError

    if store is not None:
        if not store.startswith("sqlite:"):
            raise UsageError(f"the demo's processes share a file: give it sqlite:///file.db, not {store!r}")
        yield store
    elif keep is not None:
        yield f"sqlite:///{quote(str(keep.absolute() / 'tape.db'))}"
    else:
        with TemporaryDirectory(prefix="tape-demo-") as folder:
            yield f"sqlite:///{quote(folder)}/tape.db"


@contextmanager
def _lake(keep: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where the lake is, and its page; the page stays in any case, for somebody wants to look at it."""
    import os

    from tape.cli.demo_lake import PAGE
    from tape.settings import Settings

    if keep is not None:
        yield keep.absolute() / "lake", keep.absolute() / PAGE
        return
    with TemporaryDirectory(prefix="tape-demo-") as folder:
        yield Path(folder) / "lake", Settings.read(os.environ).data.absolute() / "demo" / PAGE


async def _demo(choices: Choices, url: str, seconds: float, lake: tuple[Path, Path] | None) -> Report:
    from tape import compose
    from tape.cli import demo_fork, demo_lake
    from tape.cli.demo_stage import Stage
    from tape.cli.journal import audit

    _, is_unsafe = choices.location()
    async with compose.open_store(url, unsafe_durability=is_unsafe) as store:
        async with compose.run_journal(store) as journal:
            stage = Stage(journal, url, await journal.head(), is_quiet=choices.is_json)
            report = await stage.perform(seconds)
            report = report.with_story(await demo_fork.tell(journal, store.runs, stage.prefix))
            if lake is not None:
                order = demo_lake.Order(url, *lake, is_quiet=choices.is_json)
                report = report.with_lake(await demo_lake.go_through(store, order, report.story))
        return report.audited(await audit(store, lambda fault: None))


def _say(report: Report, choices: Choices, kept_at: str | None) -> None:
    from tape.cli import demo_fork, demo_lake, demo_report

    if choices.is_json:
        output.say_json(demo_report.as_json(report))
        return
    if report.story is not None:
        demo_fork.say(report.story)
    if report.lake is not None:
        demo_lake.say(report.lake)
    demo_report.say(report)
    output.say()
    if report.lake is not None and report.lake.page is not None:
        output.say(f"The page: {output.paint(output.escape(report.lake.page.as_uri()), 'bold')}")
    if kept_at is None:
        output.say("Keep it with tape demo --keep demo, and look at it on the page:")
        output.say("  tape serve --store sqlite:///demo/tape.db, then http://127.0.0.1:7880/")
    else:
        output.say(f"Look at it again: tape tail --no-follow --store '{kept_at}'")
        output.say(f"or on the page: tape serve --store '{kept_at}', then http://127.0.0.1:7880/")
