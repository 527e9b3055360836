"""The servers of both sides, each as its documentation starts it."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import redis

from tests.bench.servers import valkey
from tests.bench.users.kept import keep
from tests.bench.users.processes import Program, running, script, until
from tests.bench.users.stores import Store, empty_store
from tests.servers.nats import NatsServer
from tests.servers.process import free_port

TAPE_SERVE = "`tape serve --store URL` (docs/server.md)"
BY_HAND = "a service by hand: Starlette on uvicorn, `--no-access-log`"
# https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/: with `appendfsync always` a command is
# on disk before it is acknowledged, as a commit is.
REDIS = "Valkey (a Redis) with appendonly yes and appendfsync always"
# https://docs.nats.io/reference/config/jetstream/sync_interval: by default a message is acknowledged up to two minutes
# before it is on disk; with `always` it is on disk first.
JETSTREAM = "NATS JetStream, file storage, sync_interval always"


class Served(NamedTuple):
    """A server, and the database it uses."""

    port: int
    grpc: str
    store: str
    program: Program


@contextmanager
def serving(store: Store) -> Iterator[Served]:
    """`tape serve` on an empty store."""
    with empty_store(store) as url, serving_at(url) as served:
        yield served


@contextmanager
def serving_at(url: str) -> Iterator[Served]:
    free = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")  # the documented ports may be taken
    with running([script("tape"), "serve", "--json", "--store", url, *free], is_read=True) as program:
        ready = json.loads(program.line())
        yield Served(int(ready["url"].rpartition(":")[2]), str(ready["grpc"]), url, program)


@contextmanager
def serving_by_hand(store: Store) -> Iterator[Served]:
    with empty_store(store) as url, serving_by_hand_at(url) as served:
        yield served


@contextmanager
def serving_by_hand_at(url: str) -> Iterator[Served]:
    port = free_port()
    app = "tests.bench.users.programs.by_hand_service:app"
    command = [script("uvicorn"), app, "--no-access-log", "--port", str(port)]
    with running(command, {"EVENTS_URL": url}) as program:
        until(lambda: _is_open(port) or not program.is_running, "the service by hand does not listen")
        assert program.is_running, program.log
        yield Served(port, "", url, program)


def kept_server(store: Store) -> Served:
    return keep(f"tape serve on {store}", lambda: serving(store))


def kept_by_hand(store: Store) -> Served:
    return keep(f"by hand on {store}", lambda: serving_by_hand(store))


def kept_store(store: Store) -> str:
    return keep(f"store {store}", lambda: empty_store(store))


def redis_url() -> str:
    """An empty database of a server that syncs before it answers."""
    url = valkey("always").url
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


def kept_jetstream() -> NatsServer:
    return keep("JetStream", lambda: NatsServer(sync="always"))


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
