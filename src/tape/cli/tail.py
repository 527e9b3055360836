"""`tape tail`: shows the journal's entries and follows new ones."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.core.event import Entry
    from tape.operations.ledgers import EventLog, Following

RUN_COLOURS: Final = ("cyan", "magenta", "yellow", "blue", "green")
WIDEST: Final = 24
NARROW: Final = 60


class View(NamedTuple):
    """Which entries to show."""

    run_id: str | None
    pattern: str | None
    where: str | None
    start: int | None
    follow: bool

    @property
    def begins_at_head(self) -> bool:
        """Whether it begins with the next entry; else with the first or with a given one."""
        return self.start is None and self.follow and self.run_id is None

    async def stream(self, log: EventLog, start: int) -> Following:
        from tape.operations.ledgers import LedgerStreamOptions

        options = LedgerStreamOptions(run_id=self.run_id, subject=self.pattern, where=self.where, follow=self.follow)
        if self.run_id is None:
            return await log.stream(replace(options, from_global_seq=start))
        return await log.stream(replace(options, from_seq=start))


@click.command()
@click.argument("pattern", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Only this run, to its end.")
@click.option("--where", metavar="CEL", help="Only entries for which this holds, as in payload.cost > 1.5.")
@click.option("--from", "start", type=int, metavar="N", help="After this global_seq; with --run from this seq on.")
@click.option("--no-follow", is_flag=True, help="End with what there is now.")
@shared
@click.pass_obj
def tail(
    choices: Choices, pattern: str | None, run_id: str | None, where: str | None, start: int | None, no_follow: bool
) -> None:
    """Show entries as they come: all, those of a run, or those whose subject matches PATTERN.

    In a PATTERN * stands for one segment and a last ** for any number. Without --from it begins with the first entry
    there is if --run or --no-follow is given, and else with the next one.
    """
    view = View(run_id, pattern, where, start, not no_follow)
    run(partial(_tail, choices, view))


async def _tail(choices: Choices, view: View) -> None:
    from tape.core.errors import BrokerOverflowError

    show = _show_json if choices.is_json else Lines().show
    async with _opened(choices, view) as (log, start):
        try:
            shown = await _show(await view.stream(log, start), show)
            if not shown and output.is_terminal() and not view.follow:
                output.note("there is nothing to show")
        except BrokerOverflowError as gap:
            if view.start is not None or gap.requested_seq > 1:
                raise
            output.note(str(gap))  # the caller asked for all entries
            begin = gap.available_from if view.run_id else gap.available_from - 1
            await _show(await view.stream(log, begin), show)


@asynccontextmanager
async def _opened(choices: Choices, view: View) -> AsyncIterator[tuple[EventLog, int]]:
    """What is streamed, and from where on."""
    async with choices.open_events(must_exist=True) as log:
        yield log, await _head(log) if view.begins_at_head else view.start or 0


async def _head(log: EventLog) -> int:
    from tape.core.errors import Unsupported, UsageError

    try:
        return await log.head()
    except Unsupported as error:
        advice = "say --from N (0: its beginning), --run RUN or --no-follow"
        raise UsageError(f"this server does not tell where its journal ends; {advice}") from error


async def _show(stream: Following, show: Callable[[Entry], None]) -> int:
    """Shows each entry as it arrives; returns how many."""
    count = 0
    async with aclosing(stream):
        async for entry in stream:
            show(entry)
            output.flush()
            count += 1
    return count


def _show_json(entry: Entry) -> None:
    output.write_json(as_columns(entry))


def as_columns(entry: Entry) -> dict[str, object]:
    """An entry's columns by name."""
    columns = entry._asdict()
    if entry.payload_bytes is not None:
        columns["payload_bytes"] = b64encode(entry.payload_bytes).decode()
    return columns


class Lines:
    """Shows one line per entry; columns grow when needed and never shrink."""

    def __init__(self) -> None:
        self._widths = [5, 4, 3, 8]
        self._day = time.localtime()[:3]

    def show(self, entry: Entry) -> None:
        at = time.localtime(entry.ts_ms // 1000)
        if at[:3] != self._day and output.is_terminal():
            self._day = at[:3]
            output.write(output.paint(time.strftime("— %A, %d %B %Y —", at), "dim"))
        clock = f"  {time.strftime('%H:%M:%S', at)}.{entry.ts_ms % 1000:03}" if _has_room() else ""
        position, run_id, seq, name = self._padded(entry)
        colour = RUN_COLOURS[crc32(entry.run_id.encode()) % len(RUN_COLOURS)]
        line = (
            f"{output.paint(f'{position}{clock}', 'dim')}  {output.paint(run_id, colour)} "
            f"{output.paint(seq, 'dim')}  {output.paint(name, 'bold')}"
        )
        output.write(f"{line}  {_content(entry, output.width(line) + 2)}")

    def _padded(self, entry: Entry) -> list[str]:
        """The columns before the payload, as wide as the widest so far."""
        texts = [str(entry.global_seq), entry.run_id, str(entry.seq), entry.type]
        texts = [output.fit(output.escape(text), _widest()) for text in texts]
        self._widths = [max(pair) for pair in zip(self._widths, map(output.width, texts), strict=True)]
        signs = (-1, 1, -1, 1)
        return [output.pad(*pair) for pair in zip(texts, map(int.__mul__, self._widths, signs), strict=True)]


def _has_room() -> bool:
    """Whether a line has room for the time."""
    available = output.columns()
    return available is None or available >= NARROW


def _widest() -> int:
    """The widths of run and type that leave room for the payload."""
    available = output.columns()
    return WIDEST if available is None else max(6, min(WIDEST, (available - 40) // 2))


def _content(entry: Entry, used: int) -> str:
    """The subject, unless it is the default one, and the payload, shortened to fit."""
    from tape.core import subject

    available = output.columns()
    left = None if available is None else max(available - used, 8)
    about = "" if entry.subject == subject.default(entry.type, entry.run_id) else f"{output.escape(entry.subject)} "
    if left is not None and output.width(about) > left // 2:
        about = output.fit(about, left // 2) + " "
    payload = _payload_text(entry, None if left is None else left - output.width(about))
    return f"{output.paint(about, 'blue')}{payload}"


def _payload_text(entry: Entry, cells: int | None) -> str:
    if entry.payload_json is None:
        return output.fit(f"<{len(entry.payload_bytes or b''):,} bytes of {output.escape(entry.content_type)}>", cells)
    text = entry.payload_json if cells is None else entry.payload_json[: cells + 1]
    return output.fit(output.escape(text), cells)
