"""`tape tail`: shows what the journal holds, and what comes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tape.bus.journal import Journal
    from tape.core.event import Entry

RUN_COLOURS: Final = ("cyan", "magenta", "yellow", "blue", "green")
WIDEST: Final = 24


@click.command()
@click.argument("pattern", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Only this run, to its end.")
@click.option("--where", metavar="CEL", help="Only entries for which this holds, such as payload.cost > 1.0.")
@click.option("--from", "start", type=int, metavar="N", help="After this global_seq; with --run from this seq on.")
@click.option("--no-follow", is_flag=True, help="End with what there is now.")
@shared
@click.pass_obj
def tail(
    choices: Choices, pattern: str | None, run_id: str | None, where: str | None, start: int | None, no_follow: bool
) -> None:
    """Show entries as they come: all, of a run, or whose subject matches PATTERN.

    In a PATTERN * is one segment and a last ** any number. Without --from it begins with the first entry when --run or
    --no-follow is given, and otherwise with the next one.
    """
    view = View(run_id=run_id, pattern=pattern, where=where, start=start, follow=not no_follow)
    run(partial(_tail, choices, view))


async def _tail(choices: Choices, view: View) -> None:
    show = _json if choices.is_json else Lines().show
    async with choices.open_journal() as journal:
        ...
