"""How gRPC streams end, on every store: with an end message, and not by a status from a proxy."""

from collections.abc import AsyncIterator, Callable

import anyio
import grpc
import httpx
import pytest

from tape import Event, aconnect
from tape.sdk.nouns.node import AsyncNode
from tape.wire import tape_pb2 as pb
from tests.deadlines import DEADLINE_S
from tests.server.reading import publish
from tests.server.server import TapeServer
from tests.servers.grpc_gateway import GrpcGateway, grpc_gateway
from tests.servers.grpc_stub import TapeStub


@pytest.fixture
async def between(server: TapeServer) -> AsyncIterator[GrpcGateway]:
    async with grpc_gateway(server.rpc.removeprefix("tape://"), "TailBatches", "WatchValue") as gateway:
        yield gateway


@pytest.fixture
async def node(between: GrpcGateway) -> AsyncIterator[AsyncNode]:
    async with aconnect(between.url) as node:
        yield node


async def _end_streams_at(between: GrpcGateway, is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not (is_so() and between.open_streams == 1):  # noqa: ASYNC110 - nothing tells us
            await anyio.sleep(0.01)
    between.end_streams()


async def test_a_stream_that_a_gateway_ends_with_ok_is_not_the_end_of_a_run(
    between: GrpcGateway, node: AsyncNode, http: httpx.Client, run_id: str
) -> None:
    publish(http, run_id, 1)
    read: list[int] = []

    async def follow() -> None:
        async for entry in await node.events.stream(run_id=run_id):
            read.append(entry.seq)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await _end_streams_at(between, lambda: read == [1])
            publish(http, run_id, 2)
            await _end_streams_at(between, lambda: read == [1, 2])
            publish(http, run_id, 3)
            http.post(f"/runs/{run_id}/close")

    assert read == [1, 2, 3]


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "postgres"], indirect=True)  # Redis has no ledgers
async def test_a_watch_that_a_gateway_ends_with_ok_resumes(between: GrpcGateway, node: AsyncNode, run_id: str) -> None:
    versions: list[int] = []

    async def watch() -> None:
        async for change in await node.values.watch("n", run_id):
            versions.append(change.value.version)
            if len(versions) == 2:
                return

    await node.values.set("n", run_id, 1)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await _end_streams_at(between, lambda: versions == [1])
            await node.values.set("n", run_id, 2)

    assert versions == [1, 2]


@pytest.mark.parametrize("is_short", [True, False])
def test_p7_the_last_message_has_the_reason_of_the_end(
    server: TapeServer, http: httpx.Client, run_id: str, is_short: bool
) -> None:
    publish(http, run_id, 1, 2)
    http.post(f"/runs/{run_id}/close")

    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        asked = pb.TailBatchesRequest(run_id=run_id, no_follow=is_short)
        *_, last = TapeStub(channel).TailBatches(asked, timeout=DEADLINE_S)

    facts = {"reason": "head"} if is_short else {"reason": "closed", "state": "complete"}
    assert last == pb.EventBatch(end=pb.StreamEnd(last_id=2, **facts))


async def test_a_reader_that_does_not_follow_reads_everything_when_a_gateway_ends_the_answer(
    between: GrpcGateway, node: AsyncNode, run_id: str
) -> None:
    await node.events.append([Event(run_id=run_id, payload="x" * 2_000)] * 900, open=True)
    read: list[int] = []

    async for entry in await node.events.stream(run_id=run_id, follow=False):
        read.append(entry.seq)
        if len(read) in (1, 300):
            between.end_streams()

    assert read == [*range(1, 901)]
