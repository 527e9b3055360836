"""Publishing over every interface, singly and in batches of 100, by 1, 16 and 64 callers, into both stores."""

from collections.abc import Callable, Iterator
from functools import cache, partial

from tests.bench.compare import Comparison, Side
from tests.bench.users import publishing
from tests.bench.users.by_hand import DESCRIPTIONS
from tests.bench.users.callers import Load
from tests.bench.users.servers import BY_HAND, JETSTREAM, REDIS, TAPE_SERVE
from tests.bench.users.size import Size
from tests.bench.users.stores import STORES, Store
from tests.bench.users.versions import named

AREA = "publish"
CALLERS = (1, 16, 64)
BATCHES = (1, 100)
SECONDS = 0.5
COMMAND_SECONDS = 1.0  # at least one process for each caller

HTTP = f"{TAPE_SERVE}, POST /runs/RUN/events"
GRPC = f"{TAPE_SERVE}, `tape.aconnect('tape://…')`, `client.events.append` (docs/grpc.md)"
SDK = f"{TAPE_SERVE}, `tape.connect('tape://…')` from threads (docs/grpc.md)"
EMBEDDED = "`tape.open_journal(URL)` in the publisher's process (docs/journal.md)"
COMMAND = "`tape publish`, a process for each call (docs/tutorial.md)"


def comparisons(size: Size) -> list[Comparison]:
    loads = [Load(callers, batch, size.seconds(SECONDS)) for batch in BATCHES for callers in CALLERS]
    rows = [row for store in STORES for load in loads for row in _remote(store, load)]
    rows += [row for store in STORES for load in loads for row in _embedded(store, load)]
    return [*rows, *_commands(size)]


def _remote(store: Store, load: Load) -> Iterator[Comparison]:
    """HTTP against the service by hand; gRPC and the blocking SDK against our own HTTP."""
    http, by_hand = _side(publishing.http, store, load), _side(publishing.http_by_hand, store, load)
    by_hand_is = f"{BY_HAND}; {DESCRIPTIONS[store]}"
    yield _row(f"HTTP, {load.name}, {store}, against a service by hand", http, by_hand, HTTP, by_hand_is)
    grpc, sdk = _side(publishing.grpc, store, load), _side(publishing.sdk, store, load)
    yield _row(f"gRPC, {load.name}, {store}, against our HTTP", grpc, http, GRPC, HTTP)
    yield _row(f"SDK without async, {load.name}, {store}, against our HTTP", sdk, http, SDK, HTTP)


def _embedded(store: Store, load: Load) -> Iterator[Comparison]:
    ours, by_hand = _side(publishing.embedded, store, load), _side(publishing.embedded_by_hand, store, load)
    driver = {"Postgres": "asyncpg", "SQLite": "sqlite3"}[store]
    name = f"embedded, {load.name}, {store}, against"
    yield _row(f"{name} {driver} by hand", ours, by_hand, EMBEDDED, DESCRIPTIONS[store])
    if store == "Postgres":
        window = "; a batch is MULTI and EXEC" if load.batch > 1 else ""
        client = f"{REDIS}; redis-py {named('redis').removeprefix('redis ')}, XADD{window}"
        yield _row(f"{name} Redis, synced", ours, partial(publishing.redis_stream, load), EMBEDDED, client)
        window = "; a batch is a window of 100, not all or nothing" if load.batch > 1 else ""
        client = f"{JETSTREAM}; {named('nats-py')}{window}"
        yield _row(f"{name} JetStream, synced", ours, partial(publishing.jetstream, load), EMBEDDED, client)


def _commands(size: Size) -> Iterator[Comparison]:
    """A process costs a third of a second of CPU, so 64 callers are measured once."""
    for callers in CALLERS:
        for batch in BATCHES:
            load = Load(callers, batch, size.seconds(COMMAND_SECONDS))
            turns = None if callers < 64 else 1
            if turns and batch > 1:
                continue
            if batch == 1:
                ours, peer = partial(publishing.command_line, "Postgres", load), _pgqueuer(load)
                is_pgq = "`pgq queue`, a process for each call"
                yield _row(f"CLI, {load.name}, Postgres, against pgqueuer", ours, peer, COMMAND, is_pgq, turns)
            ours, peer = partial(publishing.command_line, "SQLite", load), _command_by_hand(load)
            is_hand = f"a Python program by hand, a process for each call; {DESCRIPTIONS['SQLite']}"
            yield _row(f"CLI, {load.name}, SQLite, against a program by hand", ours, peer, COMMAND, is_hand, turns)


def _pgqueuer(load: Load) -> Side:
    return partial(publishing.command_line_pgqueuer, load)


def _command_by_hand(load: Load) -> Side:
    return partial(publishing.command_line_by_hand, load)


@cache
def _side(publish: Callable[[Store, Load], float], store: Store, load: Load) -> Side:
    """The same side for every row, so that it is measured once a turn."""
    return partial(publish, store, load)


def _row(name: str, ours: Side, peer: Side, ours_is: str, peer_is: str, turns: int | None = None) -> Comparison:
    return Comparison(
        area=AREA, name=name, unit="events/s", ours=ours, peer=peer, table="users", ours_is=ours_is, peer_is=peer_is,
        turns=turns,
    )  # fmt: skip
