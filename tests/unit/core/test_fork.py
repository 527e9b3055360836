"""The segments of a run with ancestors, and the lineage of a child."""

import pytest

from tape.core import fork
from tape.core.errors import UsageError
from tape.core.fork import Ancestor, Lineage, Segment
from tape.core.ids import RunId, Seq

ROOT, CHILD, GRANDCHILD = RunId("root"), RunId("child"), RunId("grandchild")
LINEAGE = (Ancestor(ROOT, Seq(3)), Ancestor(CHILD, Seq(5)))


def test_a_run_without_ancestors_is_read_alone() -> None:
    assert fork.segments((), ROOT) == (Segment(ROOT, Seq(1), None),)


def test_ancestors_are_read_root_first_and_without_a_seam() -> None:
    assert fork.segments(LINEAGE, GRANDCHILD) == (
        Segment(ROOT, Seq(1), Seq(3)),
        Segment(CHILD, Seq(4), Seq(5)),
        Segment(GRANDCHILD, Seq(6), None),
    )


@pytest.mark.parametrize(
    ("from_seq", "runs", "first"),
    [
        (0, [ROOT, CHILD, GRANDCHILD], 1),
        (3, [ROOT, CHILD, GRANDCHILD], 3),
        (4, [CHILD, GRANDCHILD], 4),
        (5, [CHILD, GRANDCHILD], 5),
        (6, [GRANDCHILD], 6),
        (99, [GRANDCHILD], 99),
    ],
)
def test_reading_begins_in_the_run_that_owns_the_seq(from_seq: int, runs: list[RunId], first: int) -> None:
    segments = fork.segments(LINEAGE, GRANDCHILD, from_seq)

    assert [segment.run_id for segment in segments] == runs
    assert segments[0].first_seq == first


@pytest.mark.parametrize(
    ("at_seq", "lineage"),
    [
        (0, ()),
        (2, ((ROOT, 2),)),
        (3, ((ROOT, 3),)),
        (4, ((ROOT, 3), (CHILD, 4))),
        (5, ((ROOT, 3), (CHILD, 5))),
        (6, ((ROOT, 3), (CHILD, 5), (GRANDCHILD, 6))),
    ],
)
def test_a_child_inherits_from_those_who_own_the_entries(at_seq: int, lineage: Lineage) -> None:
    assert fork.lineage_of_child(LINEAGE, GRANDCHILD, at_seq) == lineage


def test_an_ancestor_that_contributes_nothing_is_not_read() -> None:
    lineage = (Ancestor(ROOT, Seq(0)), Ancestor(CHILD, Seq(2)), Ancestor(RunId("empty"), Seq(2)))

    assert [segment.run_id for segment in fork.segments(lineage, GRANDCHILD)] == [CHILD, GRANDCHILD]


def test_a_fork_before_the_beginning_is_refused() -> None:
    with pytest.raises(UsageError, match="from 0 on, not at -1"):
        fork.lineage_of_child((), ROOT, -1)


PIECES = fork.segments(LINEAGE, GRANDCHILD)


@pytest.mark.parametrize(
    ("floors", "begin", "through"),
    [
        ({}, 1, None),
        ({ROOT: 3}, 3, None),
        ({ROOT: 4}, 4, None),
        ({ROOT: 9}, 4, None),
        ({ROOT: 9, CHILD: 5}, 5, 3),
        ({ROOT: 9, CHILD: 9}, 6, 3),
        ({CHILD: 5}, 1, 3),
        ({GRANDCHILD: 7}, 1, 5),
        ({ROOT: 9, CHILD: 9, GRANDCHILD: 8}, 8, 3),
    ],
)
def test_what_its_owners_have_lost_is_a_gap(floors: dict[RunId, int], begin: int, through: int | None) -> None:
    kept = {run_id: Seq(floor) for run_id, floor in floors.items()}

    assert fork.surviving_from(PIECES, kept) == begin
    assert fork.unbroken_through(PIECES, kept) == through
