"""A fork owns only what it adds: which run holds which part of a child's history.

The law: a child forked at k is its parent's entries 1 to k, then its own from k+1 on, and every entry keeps its seq.
So each seq of a run is owned by exactly one run of its lineage, at that same seq, and reading the segments in order
reads what a copy would hold.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tape.core.errors import UsageError
from tape.core.ids import RunId, Seq


class Ancestor(NamedTuple):
    """A run whose entries are inherited, from where the ancestor before it ends through a seq."""

    run_id: RunId
    through_seq: Seq


class Segment(NamedTuple):
    """A stretch of one run's own entries, both ends included; the last one of a run is open."""

    run_id: RunId
    first_seq: Seq
    last_seq: Seq | None


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
