"""Runs that are ended with a reason, and runs that are compared."""

import pytest

from tape.bus.journal import Journal
from tape.core.diff import Change
from tape.core.errors import RunNotFound
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse.run_end import RunEndFrames
from tape.wire.frames import RunEnd
from tests.contract.events import fill, make_event, read_all, seqs, upto


async def test_ending_a_run_appends_the_reason_and_closes_it(journal: Journal) -> None:
    await fill(journal, "r1", 2)

    last_seq = await journal.end_run("r1", "failed", "out of dice")

    *_, last = found = await read_all(journal, "r1")
    assert (last_seq, seqs(found)) == (3, upto(3))
    assert (last.kind, last.type, last.subject) == ("run", "failed", "/tape/run/failed/_/_/_/r1")
    assert last.payload == {"reason": "out of dice"}
    assert await journal.live_runs() == []


async def test_an_ended_run_is_not_ended_again(journal: Journal) -> None:
    await fill(journal, "r1", 2)
    await journal.close_run("r1")

    assert await journal.end_run("r1", "cancelled", "") == 2
    assert seqs(await read_all(journal, "r1")) == upto(2)


async def test_a_run_without_json_is_closed_without_a_reason(journal: Journal) -> None:
    await journal.append(Event(run_id="r1", payload=b"x", content_type="text/plain"), open=True)

    assert await journal.end_run("r1", "cancelled", "") == 1
    assert await journal.live_runs() == []


async def test_any_reason_can_be_stored(journal: Journal) -> None:
    await fill(journal, "r1", 0)

    await journal.end_run("r1", "failed", "\x00\ud800\n" + "x" * 10_000)

    (last,) = await read_all(journal, "r1")
    assert isinstance(last.payload, dict) and str(last.payload["reason"]).startswith("   xxx")


async def test_the_end_of_a_reopened_run_has_the_state_complete(store: Store, journal: Journal) -> None:
    await fill(journal, "r1", 2)
    await journal.close_run("r1")
    await journal.open_run("r1")

    end = await RunEndFrames(store.runs).of(RunId("r1"), 2)

    assert end == RunEnd(reason="closed", last_event_id=2, state="complete")


async def test_an_unknown_run_cannot_be_ended(journal: Journal) -> None:
    with pytest.raises(RunNotFound):
        await journal.end_run("r1", "cancelled", "")


async def test_a_child_differs_from_its_parent_by_what_followed_the_fork(journal: Journal) -> None:
    await fill(journal, "parent", 3)
    await journal.fork("parent", 2, run_id="child", mutation={"wind": 9})
    await journal.append(make_event("child", 30))

    found = await journal.diff("parent", "child")

    assert (found.one, found.other, found.shared) == ("parent", "child", 2)
    assert [(row.one and row.one.seq, row.other and row.other.seq) for row in found.rows] == [
        (None, 3),
        (None, 4),
        (3, 5),
    ]
    assert found.rows[-1].changes == (Change("n", "3", "30"),)


async def test_unknown_runs_cannot_be_compared(journal: Journal) -> None:
    await fill(journal, "parent", 1)

    with pytest.raises(RunNotFound) as refused:
        await journal.diff("parent", "child")

    assert refused.value.run_id == "child"
