"""Requests: what one may contain."""

import pytest

from tape.core.child import MAX_ANCESTORS
from tape.core.errors import BrokerOverflowError, Conflict, LimitReached, RunNotFound, TooLarge, UsageError
from tape.core.event import Event
from tape.core.fork import Ancestor, Fork
from tape.core.fork_request import fork_request
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.run import Head
from tape.core.sequence import Accepted, AppendRequest, AppendVerdict, CellChange, CellId, Known, Refused, decide

PARENT, CHILD = RunId("parent"), RunId("child")
FORKED = Event(run_id="child", payload=1, kind="run", type="fork")


def event(run_id: str = "r1", payload: object = 1, **more: object) -> Event:
    return Event(run_id=run_id, payload=payload, **more)  # type: ignore[arg-type]


def test_a_request_has_at_least_one_event() -> None:
    with pytest.raises(UsageError, match="at least one event"):
        AppendRequest()


def test_a_request_is_at_most_a_thousand_events() -> None:
    assert len(AppendRequest(events=(event(),) * 1000).events) == 1000

    with pytest.raises(TooLarge, match="1,000 events, not 1,001"):
        AppendRequest(events=(event(),) * 1001)


def test_a_request_is_at_most_eight_mebibytes() -> None:
    mebibyte = event(payload="é" * ((1 << 19) - 1))

    assert AppendRequest(events=(mebibyte,) * 8).size == 8 << 20
    with pytest.raises(TooLarge, match="8,388,608 bytes"):
        AppendRequest(events=(mebibyte,) * 8 + (event(),))


@pytest.mark.parametrize("key", ["", "x" * 257, "a\nb", "a\0", 5, b"x"])
def test_a_key_is_short_and_printable(key: object) -> None:
    with pytest.raises(UsageError, match="a key is"):
        AppendRequest(events=(event(),), key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize("expected", [-1, "0", False, 1.0])
def test_an_expectation_is_a_seq(expected: object) -> None:
    with pytest.raises(UsageError, match="expected_seq is"):
        AppendRequest(events=(event(),), expected_seq=expected)  # type: ignore[arg-type]


def test_expected_seq_is_for_one_run() -> None:
    with pytest.raises(UsageError, match="one run, not 2"):
        AppendRequest(events=(event("a"), event("b")), expected_seq=Seq(0))


def test_the_events_of_a_run_have_one_content_type() -> None:
    with pytest.raises(UsageError, match="one content_type"):
        AppendRequest(events=(event(), event(payload=b"", content_type="text/plain")))


def test_a_request_changes_a_cell_once() -> None:
    cell = CellChange(id=CellId("l", "k"), seen=0, status="", state_json="{}")

    with pytest.raises(UsageError, match="each cell once"):
        AppendRequest(cells=(cell, cell))


@pytest.mark.parametrize(
    "other",
    [
        event("r2"),
        event(type="other"),
        event(payload=2),
        event(payload="1"),
        event(subject="/other"),
        event(schema_version=2),
    ],
)
def test_another_body_has_another_digest(other: Event) -> None:
    assert AppendRequest(events=(event(),)).digest != AppendRequest(events=(other,)).digest


def test_ids_traces_and_attributes_are_no_part_of_the_body() -> None:
    again = event(event_id="other", attributes={"client_id": "c"})

    assert AppendRequest(events=(event(),)).digest == AppendRequest(events=(again,)).digest


def test_other_cells_are_another_body() -> None:
    one, other = (CellChange(id=CellId("l", "k"), seen=0, status="", state_json=state) for state in ("1", "2"))

    assert AppendRequest(cells=(one,)).digest != AppendRequest(cells=(other,)).digest


def test_a_body_cannot_be_shifted_between_events() -> None:
    assert (
        AppendRequest(events=(event(payload="ab"), event(payload="c"))).digest
        != AppendRequest(events=(event(payload="a"), event(payload="bc"))).digest
    )


def test_a_group_numbers_across_runs_in_order() -> None:
    group = [
        AppendRequest(events=(event("a"), event("b")), opens=True),
        AppendRequest(events=(event("b"), event("a")), opens=True),
    ]

    decision = decide(group, Known(GlobalSeq(10), 0))

    assert decision.verdicts == [
        Accepted(GlobalSeq(11), (Seq(1), Seq(1)), (0, 0)),
        Accepted(GlobalSeq(13), (Seq(2), Seq(2)), (0, 0)),
    ]
    assert decision.head == 14


def fork_of(parent: Head | None, at_seq: int, child: Head | None = None) -> AppendVerdict:
    heads = {run_id: head for run_id, head in ((PARENT, parent), (CHILD, child)) if head is not None}
    (verdict,) = decide([fork_request(CHILD, Fork(PARENT, Seq(at_seq)))], Known(GlobalSeq(0), 0, heads)).verdicts
    return verdict


@pytest.mark.parametrize(
    ("events", "more"),
    [
        ((FORKED, event("other")), {}),
        ((Event(run_id="parent", payload=1, kind="run", type="fork"),), {}),
        ((event("child"), FORKED), {}),
        ((), {"cells": (CellChange(id=CellId("l", "k"), seen=0, status="", state_json="{}"),)}),
        ((FORKED,), {"expected_seq": Seq(0)}),
        ((FORKED,), {"fork": Fork(RunId("no run"), Seq(0))}),
        ((FORKED,), {"fork": Fork(PARENT, Seq(-1))}),
        ((FORKED,), {"fork": Fork(PARENT, Seq(True))}),
        ((FORKED,), {"fork": Fork(PARENT, "1")}),  # type: ignore[arg-type]
    ],
)
def test_a_fork_is_one_new_run_that_begins_with_its_event(events: tuple[Event, ...], more: dict[str, object]) -> None:
    AppendRequest(events=(FORKED, event("child")), fork=Fork(PARENT, Seq(0)))

    with pytest.raises(UsageError, match=r"fork|run_id"):
        AppendRequest(**{"events": events, "fork": Fork(PARENT, Seq(0)), **more})  # type: ignore[arg-type]


def test_another_fork_is_another_body() -> None:
    places = [("a", 1), ("b", 1), ("a", 2)]
    bodies = [AppendRequest(events=(FORKED,), fork=Fork(RunId(run), Seq(at))).digest for run, at in places]

    assert len({*bodies, AppendRequest(events=(FORKED,), opens=True).digest}) == 4


def test_a_child_stands_where_it_leaves_its_parent() -> None:
    parent = Head(Seq(9), Seq(9), Seq(3), Seq(5), "text/plain", (Ancestor(RunId("root"), Seq(4)),))
    request = fork_request(CHILD, Fork(PARENT, Seq(6)), mutation=1)

    decision = decide([request], Known(GlobalSeq(10), 0, {PARENT: parent}))

    lineage = (Ancestor(RunId("root"), Seq(4)), Ancestor(PARENT, Seq(6)))
    assert decision.verdicts == [Accepted(GlobalSeq(11), (Seq(7), Seq(8)), (0, 0))]
    assert decision.heads == {CHILD: Head(Seq(8), None, Seq(3), Seq(0), "text/plain", lineage)}
    assert decision.forks == {CHILD: request.fork}


@pytest.mark.parametrize(
    ("verdict", "error", "sentence"),
    [
        (fork_of(Head(), 0, child=Head()), Conflict, "run 'child' is there already"),
        (fork_of(None, 0), RunNotFound, "'parent'"),
        (fork_of(Head(Seq(4)), 5), UsageError, "can be forked at 0 to 4, not at 5"),
        (fork_of(Head(Seq(9), floor=Seq(5)), 3), BrokerOverflowError, "run 'parent' begins at 5; 3 to 4 are gone"),
    ],
)
def test_an_impossible_fork_is_refused_with_a_reason(
    verdict: AppendVerdict, error: type[Exception], sentence: str
) -> None:
    assert isinstance(verdict, Refused)
    assert isinstance(verdict.error, error) and sentence in str(verdict.error)


@pytest.mark.parametrize("at_seq", [4, 9])
def test_a_fork_may_begin_right_below_the_floor_and_at_the_head(at_seq: int) -> None:
    assert isinstance(fork_of(Head(Seq(9), floor=Seq(5)), at_seq), Accepted)


def test_a_lineage_has_at_most_so_many_ancestors() -> None:
    lineage = tuple(Ancestor(RunId(f"r{n}"), Seq(n)) for n in range(1, MAX_ANCESTORS + 1))
    parent = Head(Seq(MAX_ANCESTORS + 1), lineage=lineage)

    too_deep = fork_of(parent, MAX_ANCESTORS + 1)

    assert isinstance(fork_of(parent, MAX_ANCESTORS), Accepted)
    assert isinstance(too_deep, Refused) and isinstance(too_deep.error, LimitReached)


def test_a_group_forks_what_it_has_just_appended_and_forks_the_fork() -> None:
    group = [
        AppendRequest(events=(event("parent"),), opens=True),
        fork_request(CHILD, Fork(PARENT, Seq(1))),
        AppendRequest(events=(event("child"),)),
        fork_request(RunId("grandchild"), Fork(CHILD, Seq(3))),
    ]

    decision = decide(group, Known(GlobalSeq(0), 0))

    assert [verdict.seqs for verdict in decision.verdicts if isinstance(verdict, Accepted)] == [(1,), (2,), (3,), (4,)]
    assert decision.heads[RunId("grandchild")].lineage == ((PARENT, 1), (CHILD, 3))
