"""The appender: grouping, bounds, and a poison value that fails alone."""

from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from tape.bus import append as appending
from tape.bus.append import Appender
from tape.core.errors import LimitReached, Unavailable
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.ports import AppendOutcome
from tape.core.sequence import AppendRequest


class FakeJournal:
    """Numbers what it is given, when it is let."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.gate = anyio.Event()
        self.failure: Exception | None = None

    async def append(self, requests: Sequence[AppendRequest]) -> Sequence[AppendOutcome]:
        await self.gate.wait()
        self.groups.append(len(requests))
        if self.failure is not None:
            raise self.failure
        if any(event.type == "poison" for request in requests for event in request.events):
            raise OverflowError("a value no column can hold")
        return [[event.at(1, 1, 0, 0, Epoch(1)) for event in request.events] for request in requests]


@pytest.fixture
def journal() -> FakeJournal:
    return FakeJournal()


@pytest.fixture
async def appender(journal: FakeJournal) -> AsyncIterator[Appender]:
    async with anyio.create_task_group() as tasks:
        appender = Appender(journal, lambda entries: None)  # type: ignore[arg-type]
        tasks.start_soon(appender.run)
        yield appender
        tasks.cancel_scope.cancel()


def request(count: int = 1, type: str = "message", payload: object = None) -> AppendRequest:
    return AppendRequest(events=(Event(run_id="r", payload=payload, type=type),) * count)  # type: ignore[arg-type]


async def test_requests_during_a_commit_go_into_the_next(journal: FakeJournal, appender: Appender) -> None:
    first = appender.append(request())
    await anyio.wait_all_tasks_blocked()
    others = [appender.append(request()) for _ in range(30)]

    journal.gate.set()
    for future in (first, *others):
        await future

    assert journal.groups == [1, 30]


async def test_a_group_is_at_most_a_thousand_events_and_eight_mebibytes(
    journal: FakeJournal, appender: Appender
) -> None:
    by_count = [appender.append(request(400)) for _ in range(5)]
    by_size = [appender.append(request(payload="x" * 1_000_000)) for _ in range(10)]

    journal.gate.set()
    for future in by_count + by_size:
        await future

    assert journal.groups == [2, 2, 9, 2]


async def test_a_poison_value_fails_alone(journal: FakeJournal, appender: Appender) -> None:
    futures = [appender.append(request(type=name)) for name in ("good", "poison", "good")]
    journal.gate.set()

    with pytest.raises(OverflowError):
        await futures[1]

    assert len(await futures[0]) == len(await futures[2]) == 1
    assert journal.groups == [3, 1, 1, 1]


async def test_an_unavailable_store_fails_the_whole_group_after_one_call(
    journal: FakeJournal, appender: Appender
) -> None:
    futures = [appender.append(request()) for _ in range(3)]
    journal.failure = Unavailable("the disk is full")
    journal.gate.set()

    for future in futures:
        with pytest.raises(Unavailable):
            await future

    assert journal.groups == [3]


async def test_a_full_queue_refuses_and_loses_nothing(
    journal: FakeJournal, appender: Appender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "QUEUE_EVENTS", 10)
    futures = [appender.append(request(5)), appender.append(request(5))]

    with pytest.raises(LimitReached, match="10 events wait"):
        appender.append(request())

    journal.gate.set()
    assert [len(await future) for future in futures] == [5, 5]


async def test_a_request_cancelled_in_the_queue_is_not_sent(journal: FakeJournal, appender: Appender) -> None:
    first = appender.append(request())
    await anyio.wait_all_tasks_blocked()
    withdrawn, kept = appender.append(request()), appender.append(request())
    withdrawn.cancel()

    journal.gate.set()
    await first
    await kept

    assert journal.groups == [1, 1]


async def test_a_request_in_flight_when_the_journal_closes_is_unknown_and_a_queued_one_is_not_written(
    journal: FakeJournal,
) -> None:
    async with anyio.create_task_group() as tasks:
        appender = Appender(journal, lambda entries: None)  # type: ignore[arg-type]
        tasks.start_soon(appender.run)
        in_flight = appender.append(request())
        await anyio.wait_all_tasks_blocked()
        queued = appender.append(request())
        tasks.cancel_scope.cancel()

    errors = [future.exception() for future in (in_flight, queued)]
    assert [error.outcome for error in errors if isinstance(error, Unavailable)] == ["unknown", "nothing"]


async def test_drain_waits_for_earlier_requests(journal: FakeJournal, appender: Appender) -> None:
    done: list[Sequence[Entry]] = []
    future = appender.append(request())
    future.add_done_callback(lambda future: done.append(future.result()))
    journal.gate.set()

    await appender.drain()

    assert len(done) == 1
