"""Misbehaving gRPC clients are bounded and answered, and affect no other client."""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest

from tape.wire import tape_pb2 as pb
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.server import http2
from tests.server.conftest import Start
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub

PATH = "/tape.v1.Tape/GetValue"
MIB = 1 << 20
RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture
def port(lasting_server: TapeServer) -> int:
    return int(lasting_server.rpc.rpartition(":")[2])


def ask(server: TapeServer, work: Callable[[Any], Any]) -> Any:
    """What a client of its own gets, after whatever others did."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(server.rpc.removeprefix("tape://"), options) as channel:
        return work(TapeStub(channel))


def check_well(server: TapeServer) -> None:
    asked = pb.GetValueRequest(namespace="n", key="k")
    answer = ask(server, lambda tape: tape.GetValue(asked, timeout=DEADLINE_S))
    assert answer.value.namespace == "n"


def status(server: TapeServer, work: Callable[[Any], Any]) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        ask(server, work)
    return caught.value.code()


def test_a_message_that_is_too_large_is_refused(lasting_server: TapeServer) -> None:
    large = pb.WriteValueRequest(namespace="n", key="k", value_json="x" * (4 * MIB + 1))

    refused = status(lasting_server, lambda tape: tape.WriteValue(large, timeout=DEADLINE_S))

    assert refused is RESOURCE_EXHAUSTED
    check_well(lasting_server)


def test_metadata_that_are_too_large_are_refused(lasting_server: TapeServer) -> None:
    bomb = (("x-bomb", "b" * (64 << 10)),)

    refused = status(
        lasting_server, lambda tape: tape.GetValue(pb.GetValueRequest(), metadata=bomb, timeout=DEADLINE_S)
    )

    assert refused is RESOURCE_EXHAUSTED
    check_well(lasting_server)


def test_a_hundred_streams_are_a_connections_share(lasting_server: TapeServer, port: int) -> None:
    with http2.Connection(port) as client:
        assert client.settings[http2.MAX_CONCURRENT_STREAMS] == 100
        client.send(*(http2.request_headers(number, PATH) for number in range(1, 2 * 150, 2)))

        refused = client.find(http2.RST_STREAM)

    assert (refused.stream, int.from_bytes(refused.body)) == (201, http2.ENHANCE_YOUR_CALM)
    check_well(lasting_server)


def test_headers_without_end_take_less_memory_than_they_send(lasting_server: TapeServer, port: int) -> None:
    before = lasting_server.rss
    more = http2.frame(http2.CONTINUATION, 0, 1, http2.field("x", "y" * 100) * 100)
    with http2.Connection(port) as client, suppress(OSError):
        client.send(http2.request_headers(1, PATH, flags=0))
        for _ in range(80_000):  # 800 MiB
            client.send(more)
        check_well(lasting_server)

    assert lasting_server.rss - before < 800 * MIB
    check_well(lasting_server)


def test_a_flood_of_pings_closes_the_connection(lasting_server: TapeServer, port: int) -> None:
    with http2.Connection(port) as client:
        with suppress(OSError):
            client.send(*(http2.frame(http2.PING, 0, 0, bytes(8)) for _ in range(1_000)))
        away = client.find(http2.GOAWAY)

    assert int.from_bytes(away.body[4:8]) == http2.ENHANCE_YOUR_CALM
    check_well(lasting_server)


def test_streams_that_are_reset_at_once_affect_no_other(start: Start, scale: Scale) -> None:
    server = start("memory://")
    check_well(server)
    before = server.rss

    for _ in range(scale(10)):
        rush(server, 2_000)
        check_well(server)

    assert server.rss - before < 100 * MIB


def rush(server: TapeServer, count: int) -> None:
    with http2.Connection(int(server.rpc.rpartition(":")[2])) as client, suppress(OSError):
        for number in range(1, 2 * count, 2):
            client.send(http2.request_headers(number, PATH), http2.reset(number))


def test_a_run_has_as_many_streams_as_allowed(start: Start) -> None:
    server = start("memory://", "--max-subscribers", "3")
    asked = pb.SubscribeRunRequest(run_id="r")
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        tape = TapeStub(channel)
        streams = [tape.SubscribeRun(asked, timeout=DEADLINE_S) for _ in range(3)]
        assert all(dict(stream.initial_metadata()) for stream in streams)

        assert status(server, lambda tape: list(tape.SubscribeRun(asked, timeout=DEADLINE_S))) is RESOURCE_EXHAUSTED
        streams[0].cancel()

        again = tape.SubscribeRun(asked, timeout=DEADLINE_S)
        assert dict(again.initial_metadata())


def test_a_stalled_reader_delays_no_other(start: Start, scale: Scale) -> None:
    server = start("memory://")
    text = '"' + "x" * 10_000 + '"'
    batch = pb.AppendRequest(events=[pb.Event(run_id="r", payload_json=text)] * 100, open=True)
    with http2.Connection(int(server.rpc.rpartition(":")[2])) as lazy:
        lazy.send(
            http2.request_headers(1, "/tape.v1.Tape/SubscribeRun"), http2.message(1, pb.SubscribeRunRequest(run_id="r"))
        )
        lazy.find(http2.HEADERS)
        before = server.rss

        for _ in range(scale(40)):
            ask(server, lambda tape: tape.Append(batch, timeout=DEADLINE_S))
        after = server.rss

        assert server.stop() == 0

    assert after - before < 300 * MIB


def test_a_tail_that_takes_nothing_costs_a_bounded_memory_and_gets_everything(
    start: Start, tmp_path: Path, scale: Scale
) -> None:
    requests, many = scale(100), 1_000
    server = start(f"sqlite:///{tmp_path}/tape.db")
    some = pb.AppendRequest(events=[pb.Event(run_id="r", payload_json=f'"{"x" * 100}"')] * many, open=True)
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        tape = TapeStub(channel)
        tape.Append(some, timeout=DEADLINE_S)
        stream = tape.TailBatches(pb.TailBatchesRequest(), timeout=8 * DEADLINE_S)
        stream.initial_metadata()
        before = server.rss

        for _ in range(1, requests):
            tape.Append(some, timeout=DEADLINE_S)
        grown = server.rss - before
        found = list(islice((entry.global_seq for batch in stream for entry in batch.entries), requests * many))
        stream.cancel()

    assert grown < 100 * MIB  # the shared tail, and what is kept for the next reader
    assert found == [*range(1, requests * many + 1)]
