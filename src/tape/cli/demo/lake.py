"""The last part of the demo: Spark writes the journal into a lake, and it is read back, aggregated and drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anyio import to_thread

from tape.cli import output
from tape.cli.demo.report import Check
from tape.core.ids import GlobalSeq
from tape.core.ports import Reader, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tape.cli.demo.fork import ForkResult
    from tape.lake.log import DeltaLog

NEEDED: Final = ("pyspark", "deltalake", "duckdb", "pyarrow", "matplotlib")
PAGE: Final = "report.html"


class LakeResult(NamedTuple):
    """What was done, the checks, and the page; without Spark the reason why there is none."""

    lines: tuple[tuple[str, str], ...] = ()
    checks: tuple[Check, ...] = ()
    page: Path | None = None
    skipped: str = ""


class Order(NamedTuple):
    """The journal, the lake and the page to write."""

    url: str
    lake: Path
    page: Path
    is_quiet: bool


async def run(store: Store, order: Order, fork: ForkResult | None) -> LakeResult:
    """Journal, Spark, lake, tables, page: one after the other, then all of it compared."""
    from tape.core.errors import UsageError

    for package in NEEDED:
        if find_spec(package) is None:
            return LakeResult(skipped=f"the lake needs the package {package}; install tape-bus[spark]")
    if (await store.journal.bounds()).floor > 1:
        return LakeResult(skipped="the journal has let go of its beginning, so a new lake cannot have it")
    try:
        return await _run(store, order, fork)
    except UsageError as error:
        return LakeResult(skipped=str(error))


async def _run(store: Store, order: Order, fork: ForkResult | None) -> LakeResult:
    from tape.lake.lazy_reader import TABLE
    from tape.lake.log import DeltaLog
    from tape.lake.reports.report import write_report
    from tape.lake.status import status_of

    log = DeltaLog(order.lake / TABLE)
    lines: list[tuple[str, str]] = []
    with _timed(order, lines, "Spark starts …") as done, _spark(order.lake) as spark:
        done("spark", f"{spark.version} started")
        with _timed(order, lines, "the journal goes through Spark into the lake …") as done:
            done("lake", await _fill(store, log, order.url, spark))
        with _timed(order, lines, "the lake's tables are made …") as done:
            done("tables", await to_thread.run_sync(_make, log, spark))
    with _timed(order, lines, "the page is drawn …") as done:
        pictures = await to_thread.run_sync(write_report, order.lake, await status_of(store.journal, log), order.page)
        done("page", f"{len(pictures)} plots, as SVG in a page and as PNG beside it")
    checks = (await _held(store, log), _added_up(log, fork))
    return LakeResult(tuple(lines), checks, order.page)


@contextmanager
def _timed(order: Order, lines: list[tuple[str, str]], doing: str) -> Iterator[Callable[[str, str], None]]:
    """Shows what is being done, and afterwards how long it took."""
    if not order.is_quiet:
        output.progress(doing)
    began = time.monotonic()
    yield lambda name, what: lines.append((name, f"{what} in {time.monotonic() - began:.1f} s"))


@contextmanager
def _spark(lake: Path) -> Iterator[SparkSession]:
    import os

    from tape.lake.session import open_session
    from tape.settings import Settings

    few = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}  # the journal is small
    with open_session(Settings.read(os.environ).spark_master, lake.parent / "spark", few) as session:
        yield session


async def _fill(store: Store, log: DeltaLog, url: str, spark: SparkSession) -> str:
    from tape.lake.pipeline import spark_writer, sync

    with spark_writer(lambda: nullcontext(spark), url) as write:
        async for _ in sync(store.journal, log, write):
            pass
    seen = log.snapshot()
    return f"{seen.through:,} entries in {output.count(len(seen.files), 'file', 'files')}, {seen.size / 1024:,.0f} KiB,"


def _make(log: DeltaLog, spark: SparkSession) -> str:
    from tape.lake.derived_tables import update_tables

    made = list(update_tables(log, lambda: nullcontext(spark)))
    return f"{len(made)} tables of {sum(table.rows for table in made):,} rows"


async def _held(store: Store, log: DeltaLog) -> Check:
    """Whether the lake equals the journal, byte for byte."""
    from tape.lake.reader import LakeReader
    from tape.lake.verify import faults

    bad = await to_thread.run_sync(lambda: len(list(faults(log, is_deep=True))))
    head = (await store.journal.bounds()).head
    same = await _same(store.journal, LakeReader(log), head)
    finding = f"{same:,} of {head:,} entries equal to the byte, each position once"
    return Check("lake", same == head and not bad, finding if not bad else f"{finding}; {bad:,} faults")


async def _same(warm: Reader, cold: Reader, head: int) -> int:
    """How many entries of both are the same."""
    count, after = 0, GlobalSeq(0)
    while after < head:
        ours = (await warm.read(after)).entries
        theirs = {entry.global_seq: entry for entry in (await cold.read(after)).entries}
        pairs = [(entry, theirs[entry.global_seq]) for entry in ours if entry.global_seq in theirs]
        if not pairs:
            break
        count += sum(one == other for one, other in pairs)
        after = pairs[-1][0].global_seq
    return count


def _added_up(log: DeltaLog, fork: ForkResult | None) -> Check:
    """Whether the tables agree with the fork's own entries, and are complete."""
    from tape.lake.derived_tables import rows_of

    lake = log.table.parent
    runs, forks, left = (rows_of(lake, name) for name in ("runs", "forks", "quarantine"))
    total = sum(row["n_events"] for row in runs)
    ends = {
        row["agent"]: (row["parent_value"], row["value"]) for row in forks if fork and row["run_id"] == fork.diff.other
    }
    is_counted = fork is None or (bool(ends) and ends == _ends(fork))
    listed = ", ".join(f"{agent} {value - parent:+g}" for agent, (parent, value) in sorted(ends.items()))
    finding = f"{total:,} entries of {len(runs):,} runs, {len(left):,} in quarantine; fork: {listed or 'none'}"
    return Check("tables", total == log.snapshot().through and is_counted, finding)


def _ends(fork: ForkResult) -> dict[Any, tuple[float, float]]:
    """Each agent's prosperity at the end of the run and of its fork, from the entries."""
    found: dict[Any, tuple[float, float]] = {}
    for row in fork.diff.rows:
        if row.one is not None and row.other is not None and row.one.type == row.other.type == "metric":
            one, other = row.one.payload, row.other.payload
            if isinstance(one, dict) and isinstance(other, dict):
                found[one["agent"]] = (float(str(one["value"])), float(str(other["value"])))
    return found


def write(done: LakeResult) -> None:
    output.write()
    if done.skipped:
        output.write(f"The lake is left out: {output.escape(done.skipped)}")
        return
    output.write(output.paint("The same journal through Spark into a lake, and what it adds up to:", "bold"))
    output.table((output.paint(name, "bold"), text) for name, text in done.lines)
