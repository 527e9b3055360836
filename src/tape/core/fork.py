"""A fork owns only what it adds: which run holds which part of a child's history.

The law: a child forked at k is its parent's entries 1 to k, then its own from k+1 on, and every entry keeps its seq.
So each seq of a run is owned by exactly one run of its lineage, at that same seq, and reading the segments in order
reads what a copy would hold.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from tape.core.errors import UsageError
from tape.core.ids import RunId, Seq

RUN: Final = "run"
FORK: Final = "fork"  # of this kind and type is the first entry of every child


class Ancestor(NamedTuple):
    """A run whose entries are inherited, from where the ancestor before it ends through a seq."""

    run_id: RunId
    through_seq: Seq


class Segment(NamedTuple):
    """A stretch of one run's own entries, both ends included; the last one of a run is open."""

    run_id: RunId
    first_seq: Seq
    last_seq: Seq | None


class Fork(NamedTuple):
    """Where a child leaves its parent: it inherits the parent's entries 1 to `at_seq`."""

    parent_run_id: RunId
    at_seq: Seq


Lineage: TypeAlias = tuple[Ancestor, ...]
"""Flattened, root first, with rising seqs: an ancestor that contributes nothing is not in it."""


def segments(lineage: Sequence[Ancestor], run_id: RunId, from_seq: int = 1) -> tuple[Segment, ...]:
    """What to read, in this order, for the run's entries from a seq on; the run's own part always comes last."""
    first = max(from_seq, 1)
    inherited = []
    for ancestor in lineage:
        if first <= ancestor.through_seq:
            inherited.append(Segment(ancestor.run_id, Seq(first), ancestor.through_seq))
            first = ancestor.through_seq + 1
    return (*inherited, Segment(run_id, Seq(first), None))


def lineage_of_child(parent_lineage: Sequence[Ancestor], parent_run_id: RunId, at_seq: int) -> Lineage:
    """The lineage of a child that goes on after the parent's `at_seq`, be it the parent's own or an inherited one.

    That the parent reaches so far is for the caller to know.
    """
    if at_seq < 0:
        raise UsageError(f"a fork begins at a seq from 0 on, not at {at_seq}")
    return tuple(
        Ancestor(segment.run_id, Seq(at_seq) if segment.last_seq is None else min(segment.last_seq, Seq(at_seq)))
        for segment in segments(parent_lineage, parent_run_id)
        if segment.first_seq <= at_seq
    )


def surviving_from(pieces: Sequence[Segment], floors: Mapping[RunId, Seq]) -> Seq:
    """Where what is left of these segments begins: their first seq, unless its run has lost it."""
    for run_id, first_seq, last_seq in pieces:
        begin = max(first_seq, floors.get(run_id, Seq(1)))
        if last_seq is None or begin <= last_seq:
            return begin
    raise UsageError("the last segment of a run is open")


def unbroken_through(pieces: Sequence[Segment], floors: Mapping[RunId, Seq]) -> Seq | None:
    """How far these segments can be read on from the first one without a gap; None: to the end."""
    for before, segment in pairwise(pieces):
        if floors.get(segment.run_id, Seq(1)) > segment.first_seq:
            return before.last_seq
    return None
