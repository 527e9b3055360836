"""`client.events.list`: a run's entries in pages, with a wait for those to come, embedded and over gRPC alike."""

from datetime import timedelta

import anyio
import pytest

from tape.core.errors import InvalidCursor, RunNotFound, UsageError
from tape.core.event import Event
from tape.core.event_page import EventPage
from tape.core.page import ANSWER_BYTES
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers
LONG = timedelta(minutes=1)


async def opened(node: AsyncNode, *payloads: object) -> None:
    await node.runs.open("r1")
    if payloads:
        await append(node, *payloads)


async def append(node: AsyncNode, *payloads: object) -> None:
    await node.events.append([Event(run_id="r1", payload=payload) for payload in payloads])  # type: ignore[arg-type]


def seqs(page: EventPage) -> list[int]:
    return [entry.seq for entry in page.entries]


async def test_a_run_is_read_in_pages_to_its_end(node: AsyncNode) -> None:
    await opened(node, 1, 2, 3, 4, 5)
    await node.runs.close("r1")

    first = await node.events.list("r1", limit=3)
    second = await node.events.list("r1", after=first.next, limit=3)
    last = await node.events.list("r1", after=second.next)

    assert (seqs(first), first.next, first.head, first.closed) == ([1, 2, 3], 3, 5, True)
    assert (seqs(second), second.next, second.head, second.closed) == ([4, 5], 5, 5, True)
    assert (seqs(last), last.next, last.head, last.closed) == ([], 5, 5, True)
    assert [entry.payload for entry in first.entries] == [1, 2, 3]


async def test_an_open_run_says_so_and_a_fork_has_the_entries_it_inherits(node: AsyncNode) -> None:
    await opened(node, 1, 2)
    child = (await node.runs.fork("r1", 2)).child_run_id

    page, inherited = await node.events.list("r1"), await node.events.list(child)

    assert (seqs(page), page.closed, page.head) == ([1, 2], False, 2)
    assert [entry.run_id for entry in inherited.entries] == ["r1", "r1", child]


@pytest.mark.parametrize("after", [0, 7])
async def test_an_unknown_run_is_not_found(node: AsyncNode, after: int) -> None:
    with pytest.raises(RunNotFound):
        await node.events.list("nobody", after=after)
    with pytest.raises(RunNotFound):
        await node.events.list("nobody", wait=timedelta(milliseconds=1))


async def test_a_seq_that_does_not_exist_yet_is_no_cursor(node: AsyncNode) -> None:
    await opened(node, 1)
    page = await node.events.list("r1")

    with pytest.raises(InvalidCursor, match="seq 1"):
        await node.events.list("r1", after=2)
    with pytest.raises(InvalidCursor, match="epoch"):
        await node.events.list("r1", after=1, epoch=page.epoch - 1)
    assert seqs(await node.events.list("r1", after=1, epoch=page.epoch)) == []


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_a_limit_is_bounded(node: AsyncNode, limit: int) -> None:
    with pytest.raises(UsageError, match="limit"):
        await node.events.list("r1", limit=limit)


@pytest.mark.parametrize("wait", [timedelta(milliseconds=-1), timedelta(seconds=61)])
async def test_a_wait_is_bounded(node: AsyncNode, wait: timedelta) -> None:
    with pytest.raises(UsageError, match="a wait is 0 to 60 seconds"):
        await node.events.list("r1", wait=wait)


async def test_a_page_ends_before_it_is_too_large_to_answer(node: AsyncNode) -> None:
    await opened(node)
    for _ in range(6):
        await append(node, "x" * 1_000_000)

    found = [seqs(await node.events.list("r1", after=after)) for after in (0, 4)]

    assert found == [[1, 2, 3, 4], [5, 6]] and ANSWER_BYTES > 4_000_000


async def test_a_body_of_bytes_keeps_its_bytes_and_its_type(node: AsyncNode) -> None:
    await node.runs.open("r1")
    await node.events.append(Event(run_id="r1", payload=b"\0\xff", content_type="image/png"))

    (entry,) = (await node.events.list("r1")).entries

    assert (entry.payload, entry.content_type) == (b"\0\xff", "image/png")


@pytest.mark.parametrize("comes", ["entry", "end"])
async def test_a_wait_ends_with_the_first_entry_or_with_the_run(node: AsyncNode, comes: str) -> None:
    await opened(node, 1)
    pages: list[EventPage] = []

    async def wait() -> None:
        pages.append(await node.events.list("r1", after=1, wait=LONG))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await (append(node, 2) if comes == "entry" else node.runs.close("r1"))

    assert [(seqs(page), page.closed) for page in pages] == [([2], False) if comes == "entry" else ([], True)]


async def test_a_run_that_does_not_exist_yet_may_be_waited_for(node: AsyncNode) -> None:
    pages: list[EventPage] = []

    async def wait() -> None:
        pages.append(await node.events.list("r1", wait=LONG))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await opened(node, 1)

    assert [seqs(page) for page in pages] == [[1]]


async def test_a_wait_in_vain_is_answered_with_an_empty_page(node: AsyncNode) -> None:
    await opened(node, 1)

    page = await node.events.list("r1", after=1, wait=timedelta(milliseconds=10))

    assert (seqs(page), page.next, page.head, page.closed) == ([], 1, 1, False)
