"""What is written: events of about 300 bytes of JSON over 64 runs, into a database of their own."""

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tape.core.codec import JsonValue
from tape.core.event import Entry, Event, Trace
from tape.core.ids import Epoch
from tape.store.sqlite.location import Location

RUNS = 64
FOLDER = Path(__file__).resolve().parents[2] / "bench"  # not the system's: that one may be memory, where FULL is free
TRACE = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7")
TEXT = "The quick brown fox jumps over the lazy dog and goes on to the next line. " * 3


def event(number: int) -> Event:
    payload: JsonValue = {
        "number": number,
        "value": number / 8,
        "status": "confirmed",
        "text": TEXT,
        "tags": ["a", "b"],
    }
    return Event(run_id=f"run-{number % RUNS}", payload=payload, trace=TRACE)


def events(count: int) -> list[Event]:
    return [event(number) for number in range(count)]


def entries(events: Sequence[Event]) -> list[Entry]:
    """Events at the places an empty journal would give them."""
    seqs: Counter[str] = Counter()
    placed = []
    for place, each in enumerate(events, 1):
        seqs[each.run_id] += 1
        placed.append(each.at(place, seqs[each.run_id], 1, 0, Epoch(1)))
    return placed


@contextmanager
def set_aside() -> Iterator[None]:
    """Keeps the garbage collector from walking through all that was prepared; a peer's bytes cost it nothing."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def database() -> Iterator[Location]:
    """An empty file with Tape's defaults, gone afterwards."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix=".scratch-", dir=FOLDER) as folder:
        location = Location.parse(f"sqlite:///{folder}/journal.db")
        location.prepare()
        yield location
