"""The ways to publish with Tape and with its peers; each checks that everything acknowledged is stored."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis.asyncio

import tape
from tests.bench.users.by_hand import NewEvent, open_events
from tests.bench.users.callers import Call, Load, Published, publish, publish_blocking
from tests.bench.users.events import PAYLOAD_JSON, TYPE, body, event, new_runs
from tests.bench.users.http import HttpConnection
from tests.bench.users.kept import keep
from tests.bench.users.processes import script, surroundings
from tests.bench.users.servers import kept_by_hand, kept_jetstream, kept_server, kept_store, redis_url
from tests.bench.users.stores import Store, empty_store, query_number

TAPE_HEAD = "SELECT max(global_seq) FROM tape_journal"
BY_HAND_HEAD = "SELECT max(position) FROM events"
STREAM = "bench"


def http(store: Store, load: Load) -> float:
    """POST /runs/{run_id}/events, a connection for each caller."""
    server = kept_server(store)
    return _checked(server.store, TAPE_HEAD, lambda: asyncio.run(_http(server.port, load, opens=True)))


def http_by_hand(store: Store, load: Load) -> float:
    server = kept_by_hand(store)
    return _checked(server.store, BY_HAND_HEAD, lambda: asyncio.run(_http(server.port, load, opens=False)))


async def _http(port: int, load: Load, *, opens: bool) -> Published:
    runs, request = new_runs(load.callers), body(load.batch)
    first = await HttpConnection.open(port)
    for run_id in runs if opens else ():
        await first.post("/runs", json.dumps({"run_id": run_id}).encode())
    connections = [first, *[await HttpConnection.open(port) for _ in runs[1:]]]
    try:
        return await publish(load, lambda n: connections[n].post(f"/runs/{runs[n]}/events", request))
    finally:
        for connection in connections:
            connection.close()


def grpc(store: Store, load: Load) -> float:
    """`tape.aconnect("tape://…")`, one client for all callers."""
    server = kept_server(store)
    return _checked(server.store, TAPE_HEAD, lambda: asyncio.run(_grpc(server.grpc, load)))


async def _grpc(url: str, load: Load) -> Published:
    async with tape.aconnect(url) as client:
        runs = new_runs(load.callers)
        return await publish(load, lambda n: client.events.append(_events(runs[n], load.batch), open=True))


def sdk(store: Store, load: Load) -> float:
    """`tape.connect("tape://…")` without async, one client for all threads."""
    server = kept_server(store)
    return _checked(server.store, TAPE_HEAD, lambda: _sdk(server.grpc, load))


def _sdk(url: str, load: Load) -> Published:
    with tape.connect(url) as client:
        runs = new_runs(load.callers)
        return publish_blocking(load, lambda n: client.events.append(_events(runs[n], load.batch), open=True))


def embedded(store: Store, load: Load) -> float:
    """`tape.open_journal(URL)` in the publisher's own process."""
    url = keep(f"embedded {store}", lambda: empty_store(store))
    asyncio.run(_create(url))
    return _checked(url, TAPE_HEAD, lambda: asyncio.run(_embedded(url, load)))


async def _create(url: str) -> None:
    async with tape.open_journal(url):
        return


async def _embedded(url: str, load: Load) -> Published:
    async with tape.open_journal(url) as journal:
        runs = new_runs(load.callers)
        return await publish(load, lambda n: journal.append(_events(runs[n], load.batch), open=True))


def _events(run_id: str, batch: int) -> tape.Event | list[tape.Event]:
    return event(run_id) if batch == 1 else [event(run_id) for _ in range(batch)]


def embedded_by_hand(store: Store, load: Load) -> float:
    """The statement of `by_hand`, in the publisher's own process."""
    url = keep(f"embedded by hand {store}", lambda: empty_store(store))
    asyncio.run(_create_by_hand(url))
    return _checked(url, BY_HAND_HEAD, lambda: asyncio.run(_embedded_by_hand(url, load)))


async def _create_by_hand(url: str) -> None:
    async with open_events(url):
        return


async def _embedded_by_hand(url: str, load: Load) -> Published:
    async with open_events(url) as table:
        runs = new_runs(load.callers)
        return await publish(load, lambda n: table.append(runs[n], _new_events(load.batch)))


def _new_events(batch: int) -> list[NewEvent]:
    return [NewEvent(TYPE, PAYLOAD_JSON) for _ in range(batch)]


def redis_stream(load: Load) -> float:
    """XADD, and for a batch redis-py's default pipeline: MULTI and EXEC."""
    return asyncio.run(_redis_stream(redis_url(), load)).rate


async def _redis_stream(url: str, load: Load) -> Published:
    async with redis.asyncio.from_url(url) as client:

        async def add(number: int) -> None:
            if load.batch == 1:
                await client.xadd(STREAM, {"type": TYPE, "payload": PAYLOAD_JSON})
                return
            pipeline = client.pipeline()
            for _ in range(load.batch):
                pipeline.xadd(STREAM, {"type": TYPE, "payload": PAYLOAD_JSON})
            await pipeline.execute()

        done = await publish(load, add)
        _compare(done, await client.xlen(STREAM))
        return done


def jetstream(load: Load) -> float:
    """`publish` of nats-py; a batch is a hundred publishes whose acknowledgements are awaited together."""
    return asyncio.run(_jetstream(kept_jetstream().url, load)).rate


async def _jetstream(url: str, load: Load) -> Published:
    connection = await import_module("nats").connect(url)
    stream = connection.jetstream()
    await stream.add_stream(name=STREAM, subjects=[STREAM], storage="file")
    done = await publish(load, _jetstream_call(stream, load.batch))
    _compare(done, (await stream.stream_info(STREAM)).state.messages)
    await stream.delete_stream(STREAM)
    await connection.close()
    return done


def _jetstream_call(stream: Any, batch: int) -> Call:
    data = PAYLOAD_JSON.encode()

    async def one(number: int) -> None:
        await stream.publish(STREAM, data)

    async def many(number: int) -> None:
        await asyncio.wait([await stream.publish_async(STREAM, data) for _ in range(batch)])

    return one if batch == 1 else many


def command_line(store: Store, load: Load) -> float:
    """`tape publish RUN JSON --open`, and for a batch `tape publish RUN @FILE`: a process for each call."""
    url = kept_store(store)
    asyncio.run(_create(url))
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "events.jsonl"
        lines.write_text(f"{PAYLOAD_JSON}\n" * load.batch)
        payload = PAYLOAD_JSON if load.batch == 1 else f"@{lines}"
        runs = new_runs(load.callers)
        options = ("--type", TYPE, "--open", "--store", url)
        call = partial(_run, lambda n: [script("tape"), "publish", runs[n], payload, *options])
        return _checked(url, TAPE_HEAD, lambda: publish_blocking(load, call, warm=0))


def command_line_pgqueuer(load: Load) -> float:
    """`pgq queue ENTRYPOINT PAYLOAD`, which has no batches (pgqueuer docs, getting-started/quickstart)."""
    url = keep("pgq queue", lambda: empty_store("Postgres"))
    if not query_number(url, "SELECT count(*) FROM pg_tables WHERE tablename = 'pgqueuer'"):
        _run(lambda _: [script("pgq"), "install"], 0, {"PGDSN": url})
    call = partial(_run, lambda _: [script("pgq"), "queue", "bench", PAYLOAD_JSON], environment={"PGDSN": url})
    return _checked(url, "SELECT count(*) FROM pgqueuer", lambda: publish_blocking(load, call, warm=0))


def command_line_by_hand(load: Load) -> float:
    """A program of our own that opens SQLite and inserts."""
    url = keep("program by hand", lambda: empty_store("SQLite"))
    asyncio.run(_create_by_hand(url))
    program = "tests.bench.users.programs.insert_by_hand"
    runs = new_runs(load.callers)
    call = partial(_run, lambda n: [sys.executable, "-m", program, url, runs[n], str(load.batch)])
    return _checked(url, BY_HAND_HEAD, lambda: publish_blocking(load, call, warm=0))


def _run(command: Callable[[int], list[str]], number: int, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command(number), env=surroundings(environment), stdout=subprocess.DEVNULL, check=True)


def _checked(url: str, head: str, work: Callable[[], Published]) -> float:
    """The rate, once the store holds everything that was acknowledged and nothing else."""
    before = query_number(url, head)
    done = work()
    _compare(done, query_number(url, head) - before)
    return done.rate


def _compare(done: Published, stored: int) -> None:
    if done.acknowledged != stored:
        raise AssertionError(f"{done.acknowledged} events were acknowledged and {stored} are stored")
