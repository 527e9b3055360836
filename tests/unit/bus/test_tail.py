"""The tail: what it adds, what it ignores, and which readers it wakes."""

import asyncio
from typing import Final

import pytest

from tape.bus.feed import Feed
from tape.bus.tail import SWEEP, Tail, TailView
from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.core.event import Entry, Event
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import Head
from tape.core.subject import Pattern
from tape.server.sse.chunks import entry_chunk
from tape.wire.sse import IdField

BOTH: Final[tuple[IdField, ...]] = ("seq", "global_seq")


def entry(place: int, run_id: str = "r", seq: int | None = None) -> Entry:
    return Event(run_id=run_id, payload=None).at(place, place if seq is None else seq, 0, 0, Epoch(1))


def places(view: TailView) -> list[int]:
    return [entry.global_seq for entry in view.entries]


async def test_entries_that_follow_the_head_are_pushed() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(None)

    assert tail.push([entry(1), entry(2)]) and tail.push([entry(3)])

    assert (tail.head, places(view)) == (3, [1, 2, 3])


@pytest.mark.parametrize(
    ("pushed", "head", "is_all"),
    [
        ([3, 11], 11, True),
        ([11, 3], 11, True),
        ([11, 3, 12], 12, True),
        ([15, 20], 10, False),
        ([11, 20], 11, False),
        ([3], 10, True),
        ([], 10, True),
    ],
)
async def test_positions_of_a_repeated_request_make_no_hole(pushed: list[int], head: int, is_all: bool) -> None:
    tail = Tail(GlobalSeq(10))
    view = tail.join(None)

    assert tail.push([entry(place) for place in pushed]) is is_all

    assert tail.head == head
    assert places(view) == list(range(11, head + 1))


async def test_p6_a_view_does_not_reach_back_to_what_it_has_dropped() -> None:
    tail = Tail(GlobalSeq(0), entries=8)
    view = tail.join(None)

    tail.push([entry(place) for place in range(1, 21)])

    assert places(view) == list(range(13, 21))
    assert [view.after(GlobalSeq(place)) for place in (0, 11, 12, 20)] == [-1, -1, view.base, view.base + 8]


async def test_an_entry_wakes_only_readers_of_its_views() -> None:
    tail = Tail(GlobalSeq(0))
    waits = {
        name: tail.join(selection).wait()
        for name, selection in (
            ("its run", RunId("r")),
            ("another run", RunId("s")),
            ("its subject", Pattern.parse("/tape/event/*/r")),
            ("another subject", Pattern.parse("/tape/event/*/s")),
            ("everything", None),
        )
    }

    tail.push([entry(1)])

    assert {name for name, future in waits.items() if future.done()} == {"its run", "its subject", "everything"}


async def test_a_reader_that_stops_waiting_leaves_no_future_in_a_shared_view() -> None:
    view = Tail(GlobalSeq(0)).join(None)
    waiters = [view.wait() for _ in range(100)]

    for waiter in waiters[1:]:
        view.forget(waiter)

    assert view.waiting == {waiters[0]}


async def test_the_last_reader_removes_its_view_and_interrupts_the_feed() -> None:
    tail, left = Tail(GlobalSeq(0)), asyncio.Event()
    tail.interrupt = left.set
    view = tail.join(RunId("r"))
    tail.join(RunId("r"))

    tail.leave(RunId("r"), view)
    assert tail.has_readers.is_set() and not left.is_set()
    tail.leave(RunId("r"), view)

    assert left.is_set() and tail.run_ids == []


async def test_a_closed_tail_refuses_to_wait() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(None)
    waiting = view.wait()

    tail.close()

    assert waiting.done()
    with pytest.raises(Unavailable, match="closed"):
        view.wait()


async def test_a_skip_overtakes_every_reader() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(None)
    tail.push([entry(1), entry(2)])
    place = view.after(GlobalSeq(2))

    tail.skip(GlobalSeq(9))

    assert place < view.base and view.after(GlobalSeq(8)) < view.base
    assert view.after(GlobalSeq(9)) >= view.base


async def test_an_old_head_does_not_end_a_run_with_newer_entries() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(RunId("r"))
    tail.push([entry(1), entry(2)])

    tail.update_heads({RunId("r"): Head(last_seq=1, closed_seq=1)})  # type: ignore[arg-type]

    assert view.closed_seq is None


async def test_the_end_of_an_earlier_incarnation_ends_no_stream() -> None:
    """The answers of two connections may overtake each other."""
    tail = Tail(GlobalSeq(0))
    view = tail.join(RunId("r"))
    tail.push([entry(1), entry(2)])

    tail.update_heads({RunId("r"): Head(last_seq=Seq(2), opened_seq=Seq(2))})
    waiting = view.wait()
    tail.update_heads({RunId("r"): Head(last_seq=Seq(2), closed_seq=Seq(2))})

    assert view.closed_seq is None and not waiting.done()


async def test_the_end_of_the_present_incarnation_wakes_readers() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(RunId("r"))
    tail.push([entry(1), entry(2)])
    waiting = view.wait()

    tail.update_heads({RunId("r"): Head(last_seq=Seq(2), closed_seq=Seq(2))})

    assert view.closed_seq == 2 and waiting.done()


async def test_a_reopened_run_is_not_closed() -> None:
    tail = Tail(GlobalSeq(0))
    view = tail.join(RunId("r"))
    tail.update_heads({RunId("r"): Head(closed_seq=0)})  # type: ignore[arg-type]
    assert view.closed_seq == 0

    tail.push([entry(1)])

    assert view.closed_seq is None


async def test_a_reader_of_a_new_fork_reads_inherited_entries_from_the_journal() -> None:
    tail = Tail(GlobalSeq(0))
    view, everything = tail.join(RunId("child")), tail.join(None)
    place, woken = view.after(GlobalSeq(0)), view.wait()
    forked = Event(run_id="child", payload=None, kind="run", type="fork")

    tail.push([forked.at(1, 8, 0, 0, Epoch(1)), entry(2, "child", 9)])

    assert place < view.base and woken.done()
    assert view.after(GlobalSeq(0)) < 0
    assert (places(view), places(everything)) == ([2], [1, 2])


async def test_a_later_epoch_replaces_the_tail() -> None:
    tail = Tail(GlobalSeq(0), epoch=Epoch(1))
    view = tail.join(RunId("r"))
    tail.push([entry(1), entry(2)])
    tail.update_heads({RunId("r"): Head(last_seq=Seq(2), closed_seq=Seq(2))})
    place, woken, interrupted = view.after(GlobalSeq(2)), view.wait(), asyncio.Event()
    tail.interrupt = interrupted.set

    assert tail.observe_epoch(Epoch(2), GlobalSeq(1))

    assert place < view.base and (view.entries, view.closed_seq, view.lag(view.base)) == ([], None, (0, 0))
    assert (tail.head, tail.epoch) == (1, 2)
    assert woken.done() and interrupted.is_set()


async def test_an_earlier_epoch_is_ignored_and_the_same_one_changes_nothing() -> None:
    tail = Tail(GlobalSeq(0), epoch=Epoch(2))
    view = tail.join(None)
    tail.push([entry(1)])

    assert not tail.observe_epoch(Epoch(1), GlobalSeq(9)) and tail.observe_epoch(Epoch(2), GlobalSeq(9))

    assert (tail.head, tail.epoch, places(view)) == (1, 2, [1])


@pytest.mark.parametrize(("epoch", "held"), [(1, []), (2, [1]), (3, [])])
async def test_appended_entries_of_another_epoch_are_read_from_the_journal(epoch: int, held: list[int]) -> None:
    """An answer may come late, when its journal is lost already, or before the tail has met its epoch."""
    async with open_store("memory://") as store:
        tail = Tail(GlobalSeq(0), epoch=Epoch(2))
        view = tail.join(None)

        Feed(store, tail).on_appended([entry(1)._replace(epoch=Epoch(epoch))])

    assert places(view) == held and tail.head == len(held)


@pytest.mark.parametrize("size", [0, 100, 10_000])
@pytest.mark.parametrize("content", ["text", "bytes"])
async def test_cached_frames_count_towards_the_rings_bytes(size: int, content: str) -> None:
    limit = 1 << 20
    tail = Tail(GlobalSeq(0), entries=1 << 20, limit=limit)
    view = tail.join(None)
    payload: str | bytes = "x" * size if content == "text" else b"x" * size
    event = Event(
        run_id="a-run-of-usual-length-0123456789",
        payload=payload,
        content_type="application/json" if content == "text" else "application/octet-stream",
    )

    for place in range(1, 4 * limit // (size + 256)):
        tail.push([event.at(place, place, 1_800_000_000_000, 0, Epoch(1))])

    kept = sum(entry.weight for entry in view.entries)
    made = sum(len(entry_chunk(entry, by)) for entry in view.entries for by in BOTH)
    assert view.base > 0 and limit / 2 < kept + made <= limit * (1 + 1 / SWEEP) + 4 * (size + 256)
