"""Journals as tests of the source and the sink need them, written and read without Spark."""

import random
from collections.abc import Sequence

import anyio
from pyspark.sql import DataFrame, SparkSession

from tape.compose import open_store, run_journal
from tape.core.event import Columns, Entry, Event
from tape.core.ids import GlobalSeq
from tests.servers.databases import execute

HOSTILE: tuple[object, ...] = (
    None,
    "",
    [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    [-0.0, 0.0, 1e308, -1e308, 5e-324, 0.1, 1e16, 1.0],
    "\u2028\ufeff\x01\x7f\U0010ffff☃ñ\ud7ff\ue000",
    "\"\\\n\r\t\b\f/ '; DROP TABLE tape_journal; -- :after $1 %s {}",
    {"": {"\\": '"', "ключ": [True, False, None]}},
)


class ListSink(list[Event]):
    """Collects the events of a producer."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def emit(self, event: Event) -> None:
        self.append(event)


def fill(url: str, events: Sequence[Event]) -> None:
    """Appends them, in a loop of its own."""
    anyio.run(_fill, url, events)


def read(url: str) -> list[Entry]:
    """What is in the journal."""
    return anyio.run(_read, url)


def trim(url: str, through: int) -> None:
    anyio.run(_trim, url, through)


def delete(url: str, place: int) -> None:
    """Deletes an entry by SQL, without the store."""
    anyio.run(_delete, url, place)


def drop_newest(url: str, kept: int) -> None:
    """Makes a Postgres journal what a standby has that was promoted after `kept` entries."""
    execute(url, f"DELETE FROM tape_journal WHERE global_seq > {kept}; UPDATE tape_meta SET timeline = '00000000'")


def promote(url: str, kept: int, *, written: int) -> None:
    """The same, and then appends entries in its term."""
    drop_newest(url, kept)
    fill(url, numbered(written, start=1_000))


def numbered(count: int, start: int = 0) -> list[Event]:
    """Events that differ in every column that filters use."""
    return [
        Event(run_id=f"run{n % 3}", payload={"n": n}, type=("a", "b")[n % 2], subject=f"/n{n % 5}/{n % 7}/x")
        for n in range(start, start + count)
    ]


def hostile(count: int, seed: int) -> list[Event]:
    """Payloads that a careless copy would change, and some that are not JSON."""
    rng = random.Random(seed)
    payloads = [*HOSTILE, _nested(60), *(_payload(rng, 4) for _ in range(count))]
    events_of_json = [Event(run_id="json", payload=payload) for payload in payloads]  # type: ignore[arg-type]
    blobs = [rng.randbytes(n) for n in (0, 1, 300)]
    return events_of_json + [Event(run_id="blob", payload=blob, content_type="application/x-blob") for blob in blobs]


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """A frame's rows as the journal has them."""
    found = frame.orderBy("global_seq").collect()
    return [tuple(bytes(value) if isinstance(value, bytearray) else value for value in row) for row in found]


def source(spark: SparkSession, store: str, **options: object) -> DataFrame:
    return spark.read.format("tape").options(store=store, **options).load()  # type: ignore[arg-type]


def plain(entries: Sequence[Entry], *columns: str) -> list[tuple[object, ...]]:
    names = columns or Columns._fields
    return [tuple(getattr(entry, name) for name in names) for entry in entries]


async def _fill(url: str, events: Sequence[Event]) -> None:
    async with open_store(url) as store, run_journal(store) as journal:
        for first in range(0, len(events), 500):
            await journal.append(events[first : first + 500], open=True)


async def _read(url: str) -> list[Entry]:
    found: list[Entry] = []
    async with open_store(url) as store:
        floor, head = await store.journal.bounds()
        after = GlobalSeq(floor - 1)
        while after < head:
            page = await store.journal.read(after)
            found += page.entries
            after = page.scanned_to
    return found


async def _delete(url: str, place: int) -> None:
    async with open_store(url) as store, store.transaction() as tx:
        await tx.fetch("DELETE FROM tape_journal WHERE global_seq = :place", {"place": place})


async def _trim(url: str, through: int) -> None:
    async with open_store(url) as store:
        await store.retention.trim(GlobalSeq(through))


def _nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"d": value}
    return value


def _payload(rng: random.Random, depth: int) -> object:
    match rng.randint(0, 5 if depth else 3):
        case 0:
            return rng.randint(-(2**63), 2**63 - 1)
        case 1:
            return rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300)
        case 2:
            return "".join(chr(rng.choice([rng.randint(1, 0x7F), rng.randint(0xA0, 0xD7FF)])) for _ in range(20))
        case 3:
            return rng.choice([True, False, None])
        case 4:
            return [_payload(rng, depth - 1) for _ in range(rng.randint(0, 4))]
        case _:
            return {f"k{n}": _payload(rng, depth - 1) for n in range(rng.randint(0, 4))}
