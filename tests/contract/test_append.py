"""Appending: P2, P3, P4, and what is refused."""

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.retention import delete_old_keys
from tape.core.errors import (
    ExpectedSeqConflict,
    KeyConflict,
    RunClosed,
    RunNotFound,
    TapeError,
    UsageError,
)
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tests.conftest import Scale
from tests.contract.backends import Backend
from tests.contract.events import append, drain, entries, fill, make_event, positions, read_all, request, seqs, upto


async def test_p2_a_request_is_all_there_or_absent(journal: Journal) -> None:
    await fill(journal, "open", 1)
    await fill(journal, "closed", 1)
    await journal.close_run("closed")

    with pytest.raises(RunClosed):
        await journal.append([make_event("open", 2), make_event("closed", 2), make_event("open", 3)])

    assert await journal.head() == 2
    assert seqs(await drain(journal.stream(run_id="open", follow=False))) == [1]


async def test_p3_the_same_key_and_body_append_once(journal: Journal) -> None:
    first = await journal.append([make_event(n=1), make_event("r2", n=2)], key="k", open=True)

    again = await journal.append([make_event(n=1), make_event("r2", n=2)], key="k", open=True)

    assert again == first
    assert await journal.head() == 2


async def test_p3_one_of_many_concurrent_requests_with_a_key_appends(journal: Journal) -> None:
    answers: list[list[int]] = []

    async def publish() -> None:
        answers.append(positions(await journal.append(make_event(n=1), key="k", open=True)))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(publish)

    assert answers == [[1]] * 20
    assert await journal.head() == 1


async def test_a_key_with_another_body_conflicts_and_writes_nothing(journal: Journal) -> None:
    await journal.append(make_event(n=1), key="k", open=True)

    with pytest.raises(KeyConflict):
        await journal.append(make_event(n=2), key="k", open=True)

    assert await journal.head() == 1


async def test_a_key_outlives_the_entries_it_stands_for(store: Store) -> None:
    keyed = request(make_event(n=1), make_event("r2", n=2), make_event(n=3), key="k")
    (first,) = await store.journal.append([keyed])
    await store.retention.trim(GlobalSeq(3))

    (again,) = await store.journal.append([keyed])

    assert positions(entries(again)) == positions(entries(first)) == [1, 2, 3]
    assert seqs(entries(again)) == [1, 1, 2]


async def test_a_forgotten_key_may_be_used_again(store: Store) -> None:
    keyed = request(make_event(n=1), key="k")
    (first,) = await store.journal.append([keyed])

    forgotten = await store.retention.forget_keys(before_ms=entries(first)[0].ts_ms + 1)

    assert forgotten == 1
    (again,) = await store.journal.append([keyed])
    assert positions(entries(again)) == [2]


async def test_a_key_is_kept_for_sixty_days(store: Store) -> None:
    (first,) = await store.journal.append([request(make_event(n=1), key="k")])
    day_ms = 24 * 60 * 60 * 1000
    appended_at = entries(first)[0].ts_ms

    assert await delete_old_keys(store, now_ms=appended_at + 60 * day_ms) == 0
    assert await delete_old_keys(store, now_ms=appended_at + 60 * day_ms + 1) == 1


async def test_p4_seq_is_dense_per_run_and_rises_with_global_seq(journal: Journal, scale: Scale) -> None:
    rounds = scale(30)

    async def publish(writer: int) -> None:
        for n in range(rounds):
            await journal.append([make_event(f"r{writer % 3}", n), make_event(f"r{n % 3}", n)], open=True)

    async with anyio.create_task_group() as tasks:
        for writer in range(8):
            tasks.start_soon(publish, writer)

    found = await drain(journal.stream(follow=False))
    assert positions(found) == upto(16 * rounds)
    for run in ("r0", "r1", "r2"):
        own = [entry for entry in found if entry.run_id == run]
        assert seqs(own) == upto(len(own))


async def test_p4_seq_is_dense_for_events_that_are_appended_one_by_one(journal: Journal) -> None:
    appended = [entry for n in range(5) for entry in await journal.append(make_event(n=n), open=True)]

    assert seqs(appended) == positions(appended) == upto(5)
    assert await read_all(journal, "r1") == appended


async def test_p4_seq_goes_on_behind_what_another_node_has_written(backend: Backend) -> None:
    async with backend.two_nodes() as (one, other):
        await one.append(make_event("r1"), open=True)
        await other.append(make_event("r1"))
        await one.append(make_event("r2"), open=True)  # learns the head, and nothing about the other run

        (entry,) = await one.append(make_event("r1"))

        assert (entry.global_seq, entry.seq) == (4, 3)


async def test_exactly_one_of_many_expecting_a_seq_wins_it(journal: Journal, scale: Scale) -> None:
    await journal.open_run("r1")
    losers = 0

    async def publish(expected: int) -> None:
        nonlocal losers
        try:
            await journal.append(make_event(), expected_seq=expected)
        except ExpectedSeqConflict:
            losers += 1

    for expected in range(scale(10)):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(publish, expected)

    assert losers == 19 * scale(10)
    assert await journal.head() == scale(10)


async def test_a_refused_append_consumes_no_number(store: Store) -> None:
    group = [request(make_event(n=1)), request(make_event(n=2), expected=7), request(make_event(n=3))]

    first, refused, last = await store.journal.append(group)

    assert isinstance(refused, ExpectedSeqConflict) and refused.actual == 1
    assert positions(entries(first)) == [1] and seqs(entries(first)) == [1]
    assert positions(entries(last)) == [2] and seqs(entries(last)) == [2]


async def test_appending_needs_an_open_run(journal: Journal) -> None:
    with pytest.raises(RunNotFound):
        await journal.append(make_event())

    await journal.open_run("r1")
    await journal.append(make_event())
    await journal.close_run("r1")

    with pytest.raises(RunClosed):
        await journal.append(make_event())


async def test_open_begins_an_unknown_run_and_reopens_a_closed_one(journal: Journal) -> None:
    await journal.append(make_event(), open=True)
    await journal.close_run("r1")

    (entry,) = await journal.append(make_event(), open=True)

    assert entry.seq == 2
    assert [run.run_id for run in await journal.live_runs()] == ["r1"]


async def test_an_entry_comes_back_as_it_was_acknowledged(journal: Journal) -> None:
    event = make_event(n=1, type="Order.Placed", subject="/shop/Order/%C3%A9", schema_version=3, event_id="e-1",
                 attributes={"client_id": "browser 7"})  # fmt: skip

    acknowledged = await journal.append([event, make_event(n=2)], open=True)

    found = await drain(journal.stream(follow=False))
    assert found == acknowledged
    assert found[0].payload == {"n": 1} and found[0].attributes == {"client_id": "browser 7"}
    assert all(entry.is_intact for entry in found)


@pytest.mark.parametrize("payload", [None, True, 0, -1.5, "", "text", [], {}, [None, {"a": [1]}], 2**63 - 1, "\x01€😀"])
async def test_any_json_value_round_trips(journal: Journal, payload: object) -> None:
    await journal.append(Event(run_id="r1", payload=payload), open=True)  # type: ignore[arg-type]

    (entry,) = await drain(journal.stream(follow=False))

    assert entry.payload == payload and type(entry.payload) is type(payload)


async def test_all_bytes_of_another_content_type_round_trip(journal: Journal) -> None:
    blob = bytes(range(256))

    await journal.append(Event(run_id="r1", payload=blob, content_type="application/octet-stream"), open=True)

    (entry,) = await drain(journal.stream(follow=False))
    assert entry.payload == blob and entry.payload_json is None
    assert entry.content_type == "application/octet-stream" and entry.is_intact


async def test_a_runs_first_event_fixes_its_content_type(journal: Journal) -> None:
    await journal.append(make_event(), open=True)

    with pytest.raises(UsageError, match="holds application/json, not text/plain"):
        await journal.append(Event(run_id="r1", payload=b"x", content_type="text/plain"))

    assert await journal.head() == 1


async def test_depth_counts_causes(journal: Journal) -> None:
    (first,) = await journal.append(make_event(), open=True)
    (second,) = await journal.append(make_event(cause=first.global_seq))

    (third,) = await journal.append(make_event(cause=second.global_seq))

    assert [first.depth, second.depth, third.depth] == [0, 1, 2]


async def test_a_cause_that_names_no_entry_is_refused(journal: Journal) -> None:
    await journal.append(make_event(), open=True)

    with pytest.raises(UsageError, match="beyond the head 1"):
        await journal.append(make_event(cause=2))

    assert await journal.head() == 1


async def test_time_never_falls_along_positions(journal: Journal) -> None:
    for n in range(20):
        await journal.append(make_event(n=n), open=True)

    times = [entry.ts_ms for entry in await drain(journal.stream(follow=False))]

    assert times == sorted(times)


async def test_a_cancelled_append_is_wholly_there_or_absent(journal: Journal) -> None:
    for n in range(30):
        with anyio.move_on_after(0.0001 * (n % 5)):
            await journal.append([make_event(n=n), make_event("r2", n)], open=True)
    await journal.append([make_event(n=99), make_event("r2", 99)], open=True)

    found = await drain(journal.stream(follow=False))

    pairs = zip(found[::2], found[1::2], strict=True)
    assert all(one.payload == other.payload and (one.run_id, other.run_id) == ("r1", "r2") for one, other in pairs)


async def test_outcomes_of_a_group_are_in_the_order_of_its_requests(store: Store) -> None:
    await append(store, make_event(n=1))

    outcomes = await store.journal.append([request(make_event("x", n), opens=n % 3 > 0) for n in range(6)])

    refused = [isinstance(outcome, TapeError) for outcome in outcomes]
    assert refused == [True, False, False, False, False, False]
    assert [seqs(entries(outcome)) for outcome in outcomes[1:]] == [[1], [2], [3], [4], [5]]


async def test_no_request_has_no_outcome(store: Store) -> None:
    assert list(await store.journal.append([])) == []
