"""`tape publish`: appends events to a run."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from tape.core.codec import JsonValue
    from tape.core.event import Entry, Event
    from tape.operations.ledgers import EventLog


class AppendOptions(NamedTuple):
    """The conditions of an append."""

    key: str | None
    expected_seq: int | None
    opens: bool

    @property
    def is_one_request(self) -> bool:
        """Whether all events must fit into one request."""
        return self.key is not None or self.expected_seq is not None


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("payload", metavar="(JSON | - | @FILE)")
@click.option("--type", default="message", show_default=True, help="What kind of thing it says.")
@click.option("--subject", help="What it is about.  [default: /tape/event/TYPE/RUN]")
@click.option("--schema-version", default=1, show_default=True, help="Which shape the payload has.")
@click.option("--key", help="Append once: the same key again prints the first positions.")
@click.option("--expected-seq", type=int, help="The run's last seq before, or nothing is appended.")
@click.option("--open", "opens", is_flag=True, help="Open the run if it is not open.")
@shared
@click.pass_obj
def publish(
    choices: Choices,
    run_id: str,
    payload: str,
    type: str,
    subject: str | None,
    schema_version: int,
    key: str | None,
    expected_seq: int | None,
    opens: bool,
) -> None:
    """Append events to RUN and print their positions.

    The payload is a JSON text, - for a JSON text on stdin, or @FILE for one a line. A long file is appended a thousand
    lines at a time; with --key or --expected-seq it is one request, all or nothing.
    """
    from tape.core.errors import UsageError
    from tape.core.event import Event
    from tape.core.sequence import split_requests

    event = partial(Event, run_id=run_id, type=type, subject=subject, schema_version=schema_version)
    options = AppendOptions(key, expected_seq, opens)
    events = (event(payload=payload) for payload in _payloads(payload))
    requests: Iterator[Sequence[Event]] = _one_request(events) if options.is_one_request else split_requests(events)
    first = next(requests, ())  # errors in it show before a journal is opened
    if not first:
        raise UsageError("there is nothing to append")
    run(partial(_publish, choices, chain([first], requests), options))


async def _publish(choices: Choices, requests: Iterable[Sequence[Event]], options: AppendOptions) -> None:
    positions = Positions(is_json=choices.is_json)
    async with _opened(choices, options) as log:
        try:
            for events in requests:
                entries = await log.append(events, options.key, options.expected_seq, options.opens)
                positions.add(entries)
        finally:
            positions.end()


@asynccontextmanager
async def _opened(choices: Choices, options: AppendOptions) -> AsyncIterator[EventLog]:
    """Where events go; without --open none can be appended to a new journal, so none is created."""
    from tape.core.errors import MissingStore, UsageError

    try:
        async with choices.open_events(must_exist=not options.opens) as log:
            yield log
    except MissingStore as missing:
        raise UsageError(
            f"there is no journal {missing.place}; see --store, or publish with --open to create it"
        ) from missing


class Positions:
    """Prints positions: a line for each event as JSON, else one for each contiguous range."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._first: Entry | None = None
        self._last: Entry | None = None

    def add(self, entries: Sequence[Entry]) -> None:
        if self._is_json:
            for entry in entries:
                output.write_json({"run_id": entry.run_id, "seq": entry.seq, "global_seq": entry.global_seq})
            return
        for entry in entries:
            if self._last is None or entry.global_seq != self._last.global_seq + 1:
                self.end()
                self._first = entry
            self._last = entry
        output.progress(f"seq {entries[-1].seq:,} …")

    def end(self) -> None:
        if self._first is None or self._last is None:
            return
        seqs = _position_range(self._first.seq, self._last.seq)
        positions = _position_range(self._first.global_seq, self._last.global_seq)
        run_id = output.paint(self._first.run_id, "bold")
        output.write(f"{run_id}  seq {output.paint(seqs, 'green')}  global_seq {output.paint(positions, 'cyan')}")
        self._first = self._last = None


def _position_range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _payloads(payload: str) -> Iterator[JsonValue]:
    from tape.core import codec

    if payload == "-":
        yield codec.decode(sys.stdin.buffer.read(codec.MAX_BYTES + 1))
    elif payload.startswith("@"):
        yield from _lines(Path(payload[1:]))
    else:
        yield codec.decode(payload)


def _lines(path: Path) -> Iterator[JsonValue]:
    """The values of a file, one per line; blank lines are skipped."""
    from tape.core import codec
    from tape.core.errors import UsageError

    try:
        with path.open("rb") as file:
            longest = codec.MAX_BYTES + 2  # a line over the limit is cut and then refused, before it fills the memory
            for number, line in enumerate(iter(partial(file.readline, longest), b""), 1):
                if line.strip():
                    yield _numbered(number, path, partial(codec.decode, line.rstrip(b"\r\n")))
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _numbered(number: int, path: Path, decode: Callable[[], JsonValue]) -> JsonValue:
    from tape.core.errors import JsonLimit, TooLarge

    try:
        return decode()
    except (JsonLimit, TooLarge) as error:
        raise type(error)(f"line {number} of {path.name!r}: {error}") from None


def _one_request(events: Iterable[Event]) -> Iterator[Sequence[Event]]:
    from tape.core.sequence import MAX_EVENTS

    yield list(islice(events, MAX_EVENTS + 1))  # one too many is enough to be refused
