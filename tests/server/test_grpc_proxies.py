"""A proxy between client and server resets streams and answers with error pages; no entry is lost or repeated."""

from collections.abc import AsyncIterator, Callable

import anyio
import httpx
import pytest

from tape import Event, aconnect
from tape.core.errors import TapeError, TooLarge, Unavailable, UsageError
from tape.sdk.nouns.node import AsyncNode
from tests.deadlines import DEADLINE_S
from tests.server.http2 import CANCEL, ENHANCE_YOUR_CALM
from tests.server.reading import publish
from tests.server.server import TapeServer
from tests.servers.http2_proxy import Http2Proxy

NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM = 0, 2, 7  # nginx resets an idle stream with INTERNAL_ERROR
RESETS = [NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM]


@pytest.fixture
async def between(lasting_server: TapeServer) -> AsyncIterator[Http2Proxy]:
    async with Http2Proxy(int(lasting_server.rpc.rpartition(":")[2])).open() as proxy:
        yield proxy


@pytest.fixture
async def node(between: Http2Proxy) -> AsyncIterator[AsyncNode]:
    async with aconnect(between.url) as node:
        yield node


async def _reset_at(between: Http2Proxy, code: int, is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not (is_so() and between.open_streams == 1):  # noqa: ASYNC110 - nothing tells us
            await anyio.sleep(0.01)
    between.reset_streams(code)


@pytest.mark.parametrize("code", RESETS)
async def test_a_stream_that_a_proxy_resets_resumes(
    between: Http2Proxy, node: AsyncNode, lasting: httpx.Client, run_id: str, code: int
) -> None:
    publish(lasting, run_id, 1)
    read: list[int] = []

    async def follow() -> None:
        async for entry in await node.events.stream(run_id=run_id):
            read.append(entry.seq)

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await _reset_at(between, code, lambda: read == [1])
            publish(lasting, run_id, 2)
            await _reset_at(between, code, lambda: read == [1, 2])
            publish(lasting, run_id, 3)
            lasting.post(f"/runs/{run_id}/close")

    assert read == [1, 2, 3]


@pytest.mark.parametrize("code", RESETS)
async def test_a_watch_that_a_proxy_resets_resumes(
    between: Http2Proxy, node: AsyncNode, lasting: httpx.Client, run_id: str, code: int
) -> None:
    """Also before there is a value: both versions are written while the watch is not connected."""
    versions: list[int] = []
    is_open = anyio.Event()

    async def watch() -> None:
        changes = await node.values.watch("n", run_id)
        is_open.set()
        async for change in changes:
            versions.append(change.value.version)
            if len(versions) == 2:
                return

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await _reset_at(between, code, is_open.is_set)
            lasting.put(f"/values/n/{run_id}", json={"value": 1}).raise_for_status()
            lasting.put(f"/values/n/{run_id}", json={"value": 2}).raise_for_status()

    assert versions == [1, 2]


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, UsageError), (404, UsageError), (413, TooLarge)] + [(each, Unavailable) for each in (500, 502, 503, 504)],
)
async def test_the_error_page_of_a_proxy_is_a_clear_error(
    between: Http2Proxy, node: AsyncNode, run_id: str, status: int, error: type[TapeError]
) -> None:
    await node.values.get("n", run_id)
    between.answers = status

    with anyio.fail_after(DEADLINE_S), pytest.raises(error) as refused:
        await node.events.append([Event(run_id=run_id, payload=1)], open=True)

    assert type(refused.value) is error
    assert f"HTTP {status}" in str(refused.value)
