"""From the journal into the lake and back: how fast, how soon, and whether a row of a long journal costs more."""

import asyncio
import atexit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.ids import GlobalSeq
from tape.core.ports import Reader, Store
from tape.lake.log import DeltaLog
from tape.lake.pipeline import STEP, Write, follow, spark_writer, take_step
from tape.lake.reader import LakeReader
from tests.bench import lake
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.loop import run
from tests.bench.workload import FOLDER, database, event
from tests.lake.local_lake import arrow_writer, write_with_arrow

SHORT = 100_000
LONG = 1_000_000
COLD = 200_000
APPENDS = 40
PAUSE_S = 0.1

_stack = ExitStack()  # what sides share lives as long as the program
atexit.register(_stack.close)


def comparisons() -> list[Comparison]:
    flat = f"journal to lake, {LONG:,} entries against {SHORT:,}"
    long, short = partial(cost, LONG), partial(cost, SHORT)
    return [
        _row(flat, "µs/row", long, short, Goal("<=", 1.5)),
        _row("journal to lake, against the source alone", "rows/s", filling, lake.sqlite_source),
        _row("cold reader against the journal", "entries/s", cold, warm),
        *(
            _row(
                f"append to lake, with Spark against without, p{percent}",
                "ms",
                partial(visible, percent, with_spark),
                partial(visible, percent, arrow_writer),
            )
            for percent in (50, 99)
        ),
    ]


def _row(name: str, unit: str, ours: Side, peer: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=lake.AREA, name=name, unit=unit, ours=ours, peer=peer, goal=goal)


def filling() -> float:
    return 1e6 / cost(LONG)


def cost(rows: int, path: Path | None = None) -> float:
    """Microseconds a row, of a new lake with so many of them."""
    with (
        folder() as place,
        spark_writer(lambda: nullcontext(lake.spark()), f"sqlite:///{path or lake.file()}") as write,
    ):
        lake.spark()
        started = perf_counter()
        fill(DeltaLog(place / "journal"), write, rows)
        return (perf_counter() - started) / rows * 1e6


def fill(log: DeltaLog, write: Write, rows: int) -> None:
    seen = log.snapshot()
    while seen.through < rows:
        seen = take_step(log, write, seen, GlobalSeq(min(rows, seen.through + STEP)))


def cold() -> float:
    return run(_read(LakeReader(lake_of())))


def warm() -> float:
    return run(_warm())


async def _warm() -> float:
    async with open_store(f"sqlite:///{lake.file()}") as store:
        return await _read(store.journal)


async def _read(reader: Reader) -> float:
    """Entries a second, page by page, from the first on."""
    started, after = perf_counter(), GlobalSeq(0)
    while after < COLD:
        after = (await reader.read(after)).scanned_to
    return after / (perf_counter() - started)


@cache
def lake_of() -> DeltaLog:
    """A lake that was filled without Spark: who filled it is nothing to a reader."""
    log = DeltaLog(_stack.enter_context(folder()) / "journal")
    fill(log, partial(write_with_arrow, f"sqlite:///{lake.file()}", rows=20_000), COLD)
    return log


def with_spark(url: str) -> Write:
    writer = spark_writer(lambda: nullcontext(lake.spark()), url)
    return _stack.enter_context(writer)


def visible(percent: int, writer: Callable[[str], Write]) -> float:
    """Milliseconds from an append until a lake that follows has committed it."""
    late = run(_visible(writer))
    return quantiles(late, n=100)[percent - 1] * 1_000


async def _visible(writer: Callable[[str], Write]) -> list[float]:
    with database() as location, folder() as place:
        url = f"sqlite:///{location.path}"
        async with open_store(url) as store, run_journal(store) as journal, asyncio.TaskGroup() as tasks:
            appended: dict[int, float] = {}
            await _append(journal, {}, 1)
            seen = tasks.create_task(_follow(store, DeltaLog(place / "journal"), writer(url), appended))
            await asyncio.sleep(PAUSE_S)
            await _append(journal, appended, APPENDS)
            return await seen


async def _append(journal: Journal, appended: dict[int, float], count: int) -> None:
    for number in range(count):
        (entry,) = await journal.append([event(number)], open=True)
        appended[entry.global_seq] = perf_counter()
        await asyncio.sleep(PAUSE_S)


async def _follow(store: Store, log: DeltaLog, write: Write, appended: dict[int, float]) -> list[float]:
    late: dict[int, float] = {}
    async with aclosing(follow(store.journal, log, write)) as steps:
        async for done in steps:
            now = perf_counter()
            late |= {place: now - at for place, at in appended.items() if place <= done.through and place not in late}
            if len(late) == APPENDS:
                break
    return list(late.values())


@contextmanager
def folder() -> Iterator[Path]:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix=".scratch-", dir=FOLDER) as place:
        yield Path(place)
