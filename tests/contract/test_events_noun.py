"""`client.events`: append and stream, in this process and over gRPC alike."""

from contextlib import aclosing
from typing import Any

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.errors import (
    BrokerOverflowError,
    ExpectedSeqConflict,
    InvalidCursor,
    KeyConflict,
    ReservedSubject,
    RunClosed,
    RunNotFound,
    UsageError,
)
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.sdk.nouns.node import AsyncNode
from tests.conftest import Scale
from tests.contract.backends import needs_ledgers
from tests.contract.events import make_event
from tests.contract.ledgers import all_entries
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers


async def taken(node: AsyncNode, count: int | None = None, **wish: Any) -> list[Entry]:
    """So many entries of a stream, or all until it ends."""
    found: list[Entry] = []
    with anyio.fail_after(DEADLINE_S):
        async with aclosing(await node.events.stream(**wish)) as entries:
            async for entry in entries:
                found.append(entry)
                if len(found) == count:
                    break
    return found


async def test_appended_events_are_in_the_journal_byte_for_byte(node: AsyncNode, journal: Journal) -> None:
    blob = Event(run_id="r2", payload=b"\x00\xff", content_type="image/png")
    events = [make_event("r1", 1, subject="/shop/sold", schema_version=7), make_event("r1", 2), blob]

    entries = await node.events.append(events, open=True)

    assert entries == await all_entries(journal) == await taken(node, follow=False)


async def test_the_same_key_gives_the_first_positions(node: AsyncNode) -> None:
    first = await node.events.append(make_event("r1", 1), key="k", open=True)
    again = await node.events.append(make_event("r1", 1), key="k", open=True)

    assert [entry.global_seq for entry in again] == [entry.global_seq for entry in first]
    with pytest.raises(KeyConflict, match="'k'"):
        await node.events.append(make_event("r1", 2), key="k", open=True)


async def test_a_refused_append_raises_its_reason(node: AsyncNode, journal: Journal) -> None:
    await node.events.append(make_event("r1", 1), open=True)

    with pytest.raises(RunNotFound, match="'r2'"):
        await node.events.append(make_event("r2"))
    with pytest.raises(ExpectedSeqConflict) as conflict:
        await node.events.append(make_event("r1"), expected_seq=7)
    with pytest.raises(ReservedSubject):
        await node.events.append(make_event("r1", subject="/tape/run/ended"))
    await journal.close_run("r1")
    with pytest.raises(RunClosed):
        await node.events.append(make_event("r1"))
    assert (conflict.value.run_id, conflict.value.expected, conflict.value.actual) == ("r1", 7, 1)


async def test_a_stream_has_old_and_new_entries_once_each(node: AsyncNode, journal: Journal, scale: Scale) -> None:
    many = scale(600)
    await node.events.append([make_event("r1", n) for n in range(300)], open=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say_more, journal, range(300, many))
        found = await taken(node, many, run_id="r1")

    assert [entry.payload for entry in found] == [{"n": n} for n in range(many)]


async def say_more(journal: Journal, numbers: range) -> None:
    for number in numbers:
        await journal.append(make_event("r1", number))


async def test_a_stream_misses_nothing_from_its_creation_on(node: AsyncNode, journal: Journal) -> None:
    head = await journal.head()
    async with aclosing(await node.events.stream(from_global_seq=head)) as entries:
        await journal.append(make_event("r1", 1), open=True)
        with anyio.fail_after(DEADLINE_S):
            entry = await anext(entries)

    assert entry.payload == {"n": 1}


async def test_a_stream_of_a_run_ends_with_the_run(node: AsyncNode, journal: Journal) -> None:
    await node.events.append([make_event("r1", n) for n in range(3)], open=True)
    await journal.close_run("r1")

    assert [entry.seq for entry in await taken(node, run_id="r1", from_seq=2)] == [2, 3]


async def test_a_pattern_and_a_predicate_select(node: AsyncNode) -> None:
    subjects = ("/shop/sold", "/shop/lost")
    await node.events.append([make_event("r1", n, subject=subjects[n % 2]) for n in range(6)], open=True)

    found = await taken(node, subject="/shop/sold", where="payload.n > 1", follow=False)

    assert [entry.payload for entry in found] == [{"n": 2}, {"n": 4}]


async def test_a_gap_names_its_end(node: AsyncNode, store: Store, journal: Journal) -> None:
    await node.events.append([make_event("r1", n) for n in range(5)], open=True)
    await store.retention.trim(GlobalSeq(3))

    with pytest.raises(BrokerOverflowError) as gap:
        await taken(node, 1, from_global_seq=1)

    assert (gap.value.run_id, gap.value.requested_seq, gap.value.available_from) == (None, 2, 4)


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"from_global_seq": 9}, InvalidCursor),
        ({"from_seq": 2}, UsageError),
        ({"run_id": "r", "from_global_seq": 1}, UsageError),
        ({"where": "1 +"}, UsageError),
        ({"subject": "no-slash"}, UsageError),
        ({"run_id": "a/b"}, UsageError),
    ],
)
async def test_an_invalid_cursor_or_filter_is_refused(
    node: AsyncNode, wish: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await taken(node, 1, **wish)
