"""A dry run over history: a predicate compiled to Spark SQL against the same one asked of the evaluator in a UDF."""

import atexit
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tape.core.codec import JsonValue
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.lake.search.history import entries_under_pattern, filter_by_evaluator, history
from tape.lake.session import open_session
from tape.store.ranges import arrow_schema
from tests.bench.compare import Comparison, Goal
from tests.bench.workload import FOLDER

AREA = "history"
UNIT = "entries/s"
ENTRIES = 1_000_000
PART = 50_000
CORES = 2
TYPES = ("order.placed", "order.paid", "order.sent")
PATTERN = "/tape/event/**"
WHERE = "payload.status == 'error' && payload.amount > 500.0 && payload.user.tier == 'pro'"

_stack = ExitStack()  # what sides share lives as long as the program
atexit.register(_stack.close)


def comparisons() -> list[Comparison]:
    name = f"dry run over {ENTRIES:,} entries, compiled CEL, against the UDF"
    return [Comparison(area=AREA, name=name, unit=UNIT, ours=compiled, peer=evaluated, goal=Goal(">=", 4))]


def compiled() -> float:
    return _rate(history(lake(), PATTERN, WHERE))


def evaluated() -> float:
    """The evaluator is asked of everything behind the native subject filter."""
    return _rate(filter_by_evaluator(entries_under_pattern(lake(), PATTERN), WHERE))


def _rate(matches: DataFrame) -> float:
    started = perf_counter()
    found = matches.count()
    elapsed = perf_counter() - started
    assert found == _expected()
    return ENTRIES / elapsed


def _expected() -> int:
    return sum(_is_wanted(number) for number in range(1, ENTRIES + 1))


def _is_wanted(number: int) -> bool:
    return number % 5 == 0 and number % 1_000 > 500 and number % 2 == 0


@cache
def lake() -> DataFrame:
    """Entries as the lake's files have them; read once, so that no side pays for what starts with the first job."""
    frame = spark().read.parquet(str(_written()))
    filter_by_evaluator(entries_under_pattern(frame.limit(1_000), PATTERN), WHERE).count()
    history(frame.limit(1_000), PATTERN, WHERE).count()
    return frame


@cache
def spark() -> SparkSession:
    return _stack.enter_context(open_session(f"local[{CORES}]", _folder() / "spark"))


@cache
def _folder() -> Path:
    FOLDER.mkdir(exist_ok=True)
    return Path(_stack.enter_context(TemporaryDirectory(prefix=".history-", dir=FOLDER)))


def _written() -> Path:
    path = _folder() / "journal.parquet"
    with pq.ParquetWriter(path, arrow_schema(), compression="zstd") as writer:
        for start in range(1, ENTRIES + 1, PART):
            rows = list(_entries(start))
            arrays = [
                pa.array(column, kind)
                for column, kind in zip(zip(*rows, strict=True), arrow_schema().types, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=arrow_schema()))
    return path


def _entries(start: int) -> Iterator[Entry]:
    for number in range(start, start + PART):
        event = Event(run_id=f"r-{number % 1_000}", type=TYPES[number % 3], payload=_payload(number))
        yield event.at(number, number // 1_000 + 1, 1_700_000_000_000 + number, 0, Epoch(1))


def _payload(number: int) -> JsonValue:
    tier = "free" if number % 2 else "pro"
    user: JsonValue = {"id": number % 977, "tier": tier, "name": "Ada Lovelace", "email": "ada@example.org"}
    items: JsonValue = [{"sku": f"sku-{number % 13}", "quantity": number % 7, "price": 9.99}]
    status = "error" if number % 5 == 0 else "ok"
    return {"status": status, "amount": number % 1_000 + 0.0, "region": "eu", "user": user, "items": items}
