"""Reading a child through its ancestors against reading a run that holds as many entries itself."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter
from uuid import uuid4

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.event import Event
from tests.bench import servers
from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run
from tests.bench.workload import TEXT, database

AREA = "forks"
DEPTH = 50
READS = 5

Place = Callable[[], AbstractContextManager[str]]


def comparisons() -> list[Comparison]:
    places: dict[str, Place] = {"SQLite": file_url, "Postgres": servers.journal_url, "Valkey": valkey_url}
    return [_row(name, place, total) for name, place in places.items() for total in (200, 2_000)]


def _row(name: str, place: Place, total: int) -> Comparison:
    title = f"{total:,} entries of {DEPTH} runs against those of one, {name}"
    ours, peer = partial(read, place, total, DEPTH), partial(read, place, total, 1)
    return Comparison(area=AREA, name=title, unit="ms", ours=ours, peer=peer, goal=Goal("<=", 3))


def read(place: Place, total: int, depth: int) -> float:
    """Milliseconds for the whole run, the fastest of a few."""
    with place() as url:
        return run(_read(url, total, depth))


@contextmanager
def file_url() -> Iterator[str]:
    with database() as location:
        yield f"sqlite:///{location.path}"


@contextmanager
def valkey_url() -> Iterator[str]:
    yield f"{servers.valkey(None).url}?prefix={uuid4().hex}"


async def _read(url: str, total: int, depth: int) -> float:
    async with open_store(url) as store, run_journal(store) as journal:
        run_id = await _chain(journal, depth, total // depth)
        return min([await _time(journal, run_id, total) for _ in range(READS)])


async def _chain(journal: Journal, depth: int, each: int) -> str:
    """A run and its youngest descendant, each of which owns as many entries as the next."""
    await _append(journal, "run-1", each)
    for number in range(2, depth + 1):
        await journal.fork(f"run-{number - 1}", (number - 1) * each, run_id=f"run-{number}")
        await _append(journal, f"run-{number}", each - 1)
    return f"run-{depth}"


async def _append(journal: Journal, run_id: str, count: int) -> None:
    events = [Event(run_id=run_id, payload={"number": number, "text": TEXT}) for number in range(count)]
    for first in range(0, count, 1_000):
        await journal.append(events[first : first + 1_000], open=True)


async def _time(journal: Journal, run_id: str, total: int) -> float:
    started = perf_counter()
    found = [entry.seq async for entry in journal.stream(run_id=run_id, follow=False)]
    if len(found) != total:
        raise AssertionError(f"{len(found)} entries instead of {total}")
    return (perf_counter() - started) * 1000
