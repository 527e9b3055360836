"""Growth: bytes on disk and bytes of write-ahead log for each event that is published, and for each that is handled."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import anyio
import redis.asyncio

import tape
from tests.bench.compare import Comparison, Side
from tests.bench.servers import valkey
from tests.bench.users.by_hand import DESCRIPTIONS, NewEvent, open_events
from tests.bench.users.events import PAYLOAD_JSON, TYPE, event, new_runs
from tests.bench.users.figures import Figures
from tests.bench.users.handled import handled
from tests.bench.users.handlers import WARM, warm_up
from tests.bench.users.queues import System, peers, tape_on
from tests.bench.users.servers import JETSTREAM, REDIS, kept_jetstream, redis_url
from tests.bench.users.size import Size
from tests.bench.users.stores import STORES, Store, empty_store, query_number, sqlite_path
from tests.servers.nats import NatsServer

AREA = "growth"
EVENTS = 4_000
HANDLED = 500
TURNS = 3  # bytes hardly differ from turn to turn
BATCHES = (1, 100)
DATABASE_SIZE = "SELECT pg_database_size(current_database())"
WAL_POSITION = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"

Measure: TypeAlias = Literal["disk", "log"]
TITLES: dict[Measure, str] = {"disk": "bytes on disk", "log": "bytes of write-ahead log"}
SQLITE_TITLES: dict[Measure, str] = {"disk": "bytes on disk", "log": "bytes written to the file and its log"}
SETTLED_S = 0.5  # after the last handler has run, its outcome is written
EMBEDDED = "`tape.open_journal(URL)`, `journal.append`"


class Growth(NamedTuple):
    """Bytes so far."""

    disk: int
    log: int


def comparisons(size: Size) -> list[Comparison]:
    published = [row for store in STORES for batch in BATCHES for row in _published(store, batch, size)]
    return [*published, *_handled(size)]


def _published(store: Store, batch: int, size: Size) -> Iterator[Comparison]:
    count = size.count(EVENTS // batch, least=2) * batch
    shape = "singly" if batch == 1 else f"in batches of {batch}"
    ours, by_hand = Figures(partial(_tape, store, batch, count)), Figures(partial(_by_hand, store, batch, count))
    for name, title in (TITLES if store == "Postgres" else SQLITE_TITLES).items():
        text = f"{title} of an event published {shape}, {store}, against a table by hand"
        yield _row(text, ours.side(name), by_hand.side(name), EMBEDDED, DESCRIPTIONS[store])
    if store == "Postgres" and batch > 1:
        text = f"{TITLES['disk']} of an event published {shape}, Postgres, against"
        yield _row(f"{text} Redis's log", ours.side("disk"), partial(_redis, count), EMBEDDED, f"{REDIS}; its AOF")
        jetstream = partial(_jetstream, count)
        yield _row(f"{text} JetStream", ours.side("disk"), jetstream, EMBEDDED, f"{JETSTREAM}; its folder")


def _handled(size: Size) -> Iterator[Comparison]:
    """The event itself, the task and its outcome, as far as a system keeps them."""
    count, ours = size.count(HANDLED, least=20), tape_on("Postgres")
    mine = Figures(partial(_handling, ours, count))
    for name, peer in peers().items():
        if name == "taskiq":
            continue  # its queue is in Redis, which is measured above
        theirs = Figures(partial(_handling, peer, count))
        for figure, title in TITLES.items():
            text = f"{title} of an event published and handled, Postgres, against {name}"
            yield _row(text, mine.side(figure), theirs.side(figure), ours.described, peer.described)


def _row(name: str, ours: Side, peer: Side, ours_is: str, peer_is: str) -> Comparison:
    return Comparison(
        area=AREA, name=name, unit="bytes/event", ours=ours, peer=peer, table="users", ours_is=ours_is, peer_is=peer_is,
        turns=TURNS,
    )  # fmt: skip


def _tape(store: Store, batch: int, count: int) -> Mapping[str, float]:
    return _growth(store, count, partial(_append, batch))


async def _append(batch: int, url: str, count: int) -> None:
    async with tape.open_journal(url) as journal:
        (run_id,) = new_runs(1)
        for _ in range(count // batch):
            await journal.append([event(run_id) for _ in range(batch)], open=True)


def _by_hand(store: Store, batch: int, count: int) -> Mapping[str, float]:
    return _growth(store, count, partial(_append_by_hand, batch))


async def _append_by_hand(batch: int, url: str, count: int) -> None:
    async with open_events(url) as table:
        (run_id,) = new_runs(1)
        for _ in range(count // batch):
            await table.append(run_id, [NewEvent(TYPE, PAYLOAD_JSON)] * batch)


def _growth(store: Store, count: int, append: Callable[[str, int], Coroutine[Any, Any, None]]) -> Mapping[str, float]:
    """Of the second half, because the first events pay for the pages of empty tables."""
    with empty_store(store) as url:
        asyncio.run(append(url, count))
        before = _bytes(url)
        asyncio.run(append(url, count))
        after = _bytes(url)
    return _each(before, after, count)


def _each(before: Growth, after: Growth, count: int) -> Mapping[str, float]:
    """At least a byte: few events may fit into pages that are there, and a ratio needs something."""
    return {"disk": max(1, after.disk - before.disk) / count, "log": max(1, after.log - before.log) / count}


def _bytes(url: str) -> Growth:
    """Everything so far; a closed SQLite database has no log, so there it is what this process has written."""
    if url.startswith("sqlite:"):
        return Growth(sqlite_path(url).stat().st_size, _written())
    return Growth(query_number(url, DATABASE_SIZE), query_number(url, WAL_POSITION))


def _written() -> int:
    """The bytes of all writes of this process, as Linux counts them."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def _redis(count: int) -> float:
    url, folder = redis_url(), valkey("always").folder
    before = _folder_bytes(folder)
    asyncio.run(_add(url, count))
    return (_folder_bytes(folder) - before) / count


async def _add(url: str, count: int) -> None:
    async with redis.asyncio.from_url(url) as client:
        for _ in range(count // 100):
            pipeline = client.pipeline()
            for _ in range(100):
                pipeline.xadd("growth", {"type": TYPE, "payload": PAYLOAD_JSON})
            await pipeline.execute()


def _jetstream(count: int) -> float:
    server = kept_jetstream()
    before = _folder_bytes(server.folder)
    return asyncio.run(_publish(server, count, before))


async def _publish(server: NatsServer, count: int, before: int) -> float:
    connection = await import_module("nats").connect(server.url)
    stream = connection.jetstream()
    await stream.add_stream(name="growth", subjects=["growth"], storage="file")
    for _ in range(count // 100):
        await asyncio.wait([await stream.publish_async("growth", PAYLOAD_JSON.encode()) for _ in range(100)])
    grown = _folder_bytes(server.folder) - before
    await stream.delete_stream("growth")
    await connection.close()
    return grown / count


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _handling(system: System, count: int) -> Mapping[str, float]:
    return asyncio.run(_handle(system, count))


async def _handle(system: System, count: int) -> Mapping[str, float]:
    with handled() as seen:
        async with system.run(1, seen.environment) as running:
            await warm_up(running, seen)
            before = await asyncio.to_thread(_bytes, running.url)
            await running.publish(range(WARM, WARM + count))
            await seen.reach(WARM + count)
            await anyio.sleep(SETTLED_S)
            after = await asyncio.to_thread(_bytes, running.url)
    return _each(before, after, count)
