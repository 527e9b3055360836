"""Forks: which run owns which part of a child's history.

Invariant: a child forked at k has its parent's entries 1 to k, then its own from k+1 on, and every entry keeps its seq.
So each seq of a run is owned by exactly one run of its lineage, and reading the segments in order gives what a copy
would hold.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from tape.core.errors import UsageError
from tape.core.ids import RunId, Seq

RUN: Final = "run"
FORK: Final = "fork"  # kind and type of the first entry of every child


class Ancestor(NamedTuple):
    """A run whose entries are inherited, from the end of the previous ancestor through a seq."""

    run_id: RunId
    through_seq: Seq


class Segment(NamedTuple):
    """A range of one run's own entries, both ends included; the last segment is open-ended."""

    run_id: RunId
    first_seq: Seq
    last_seq: Seq | None


class Fork(NamedTuple):
    """The fork point: the child inherits the parent's entries 1 to `at_seq`."""

    parent_run_id: RunId
    at_seq: Seq


Lineage: TypeAlias = tuple[Ancestor, ...]
"""The flattened ancestors, root first, with rising seqs; ancestors that contribute no entry are left out."""


def segments(lineage: Sequence[Ancestor], run_id: RunId, from_seq: int = 1) -> tuple[Segment, ...]:
    """The segments that hold a run's entries from a seq on, in reading order; the run's own segment is last."""
    first = max(from_seq, 1)
    inherited = []
    for ancestor in lineage:
        if first <= ancestor.through_seq:
            inherited.append(Segment(ancestor.run_id, Seq(first), ancestor.through_seq))
            first = ancestor.through_seq + 1
    return (*inherited, Segment(run_id, Seq(first), None))


def lineage_of_child(parent_lineage: Sequence[Ancestor], parent_run_id: RunId, at_seq: int) -> Lineage:
    """The lineage of a child forked at the parent's `at_seq`, which the parent may own or inherit.

    The caller checks that the parent has that entry.
    """
    if at_seq < 0:
        raise UsageError(f"a fork begins at a seq from 0 on, not at {at_seq}")
    return tuple(
        Ancestor(segment.run_id, Seq(at_seq) if segment.last_seq is None else min(segment.last_seq, Seq(at_seq)))
        for segment in segments(parent_lineage, parent_run_id)
        if segment.first_seq <= at_seq
    )


def surviving_from(pieces: Sequence[Segment], floors: Mapping[RunId, Seq]) -> Seq:
    """The first seq of these segments that still exists."""
    for run_id, first_seq, last_seq in pieces:
        begin = max(first_seq, floors.get(run_id, Seq(1)))
        if last_seq is None or begin <= last_seq:
            return begin
    raise UsageError("the last segment of a run is open")


def unbroken_through(pieces: Sequence[Segment], floors: Mapping[RunId, Seq]) -> Seq | None:
    """The last seq that can be read from the first segment without a gap; None: to the end."""
    for before, segment in pairwise(pieces):
        if floors.get(segment.run_id, Seq(1)) > segment.first_seq:
            return before.last_seq
    return None
