"""Reading a long run from its beginning over every interface, by the first reader of a server that has just started."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from tests.bench.compare import Comparison, Side
from tests.bench.users import replaying
from tests.bench.users.by_hand import DESCRIPTIONS
from tests.bench.users.replaying import PAGE, served, served_by_hand
from tests.bench.users.servers import BY_HAND, JETSTREAM, REDIS, TAPE_SERVE
from tests.bench.users.size import Size
from tests.bench.users.stores import STORES, Store

AREA = "replay, first reader"
ENTRIES = 20_000


class Way(NamedTuple):
    """A way to read, and how it is run."""

    name: str
    described: str
    side: Side


def comparisons(size: Size) -> list[Comparison]:
    entries = size.count(ENTRIES, least=100)
    pairs = ((store, ours, peer) for store in STORES for ours, peer in _pairs(store, entries))
    return [
        Comparison(
            area=AREA, name=f"{ours.name}, {store}, against {peer.name}", unit="entries/s", ours=ours.side,
            peer=peer.side, table="users", ours_is=ours.described, peer_is=peer.described,
        )
        for store, ours, peer in pairs
    ]  # fmt: skip


def _pairs(store: Store, entries: int) -> Iterator[tuple[Way, Way]]:
    by_hand = f"{BY_HAND}; {DESCRIPTIONS[store]}"
    service = partial(Way, "a service by hand")
    pages, sse, grpc, sdk = _served_ways(store, entries)
    yield pages, service(by_hand, partial(served_by_hand, replaying.pages, store, entries))
    yield sse, service(f"{by_hand}; sse-starlette", partial(served_by_hand, replaying.sse, store, entries))
    yield grpc, sse._replace(name="our SSE")
    yield sdk, sse._replace(name="our SSE")
    here = "`tape.open_journal(URL)`, `journal.stream(run_id=RUN, follow=False)`"
    embedded = Way("embedded", here, partial(replaying.embedded, store, entries))
    process = "`tape tail --run RUN --no-follow --json`, with its start as a process"
    yield Way("CLI", process, partial(replaying.command, store, entries)), embedded
    select = f"pages of {PAGE:,}; {DESCRIPTIONS[store]}"
    yield embedded, Way("a SELECT by hand", select, partial(replaying.select, store, entries))
    if store == "Postgres":
        yield embedded, Way("Redis", f"{REDIS}; XRANGE, {PAGE:,} a page", partial(replaying.redis_stream, entries))
        yield embedded, Way("JetStream", f"{JETSTREAM}; an ordered consumer", partial(replaying.jetstream, entries))


def _served_ways(store: Store, entries: int) -> Iterator[Way]:
    def way(name: str, request: str, read: replaying.Read) -> Way:
        return Way(name, f"{TAPE_SERVE}, {request}", partial(served, read, store, entries))

    yield way("pages over HTTP", f"GET /runs/RUN/events?limit={PAGE}", replaying.pages)
    yield way("SSE", "GET /events?run_id=RUN", replaying.sse)
    yield way("gRPC", "`tape.aconnect('tape://…')`, `client.events.stream`", replaying.grpc)
    yield way("SDK without async", "`tape.connect('tape://…')`, `client.events.stream`", replaying.sdk)
