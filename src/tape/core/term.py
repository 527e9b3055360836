"""Terms: which earlier epochs a journal goes on from, and how far each of them holds.

A term begins when the database that holds the journal was promoted from a standby, or is another cluster's copy: what
the standby had not received by then is lost, and its positions are given again. Each term has an epoch of its own,
larger than all before. A new epoch that is begun by hand ends the lineage: nothing from before it is resumed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tape.core.ids import Epoch, GlobalSeq


class Term(NamedTuple):
    """The epoch of a term, and the first position that was given in it."""

    epoch: Epoch
    first: GlobalSeq


def is_resumable(terms: Sequence[Term], epoch: int, position: int) -> bool:
    """Whether a cursor of an epoch may be resumed in a journal of these terms.

    It may if its epoch is one of theirs and every later term begins beyond its position.
    """
    later = [term.first for term in terms if term.epoch > epoch]
    return any(term.epoch == epoch for term in terms) and all(position < first for first in later)
