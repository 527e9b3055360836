"""Terms: which earlier epochs a journal continues, and up to which position.

A term begins when the database was promoted from a standby, or is a copy from another cluster: entries that the standby
had not received are lost, and their positions are given again. Each term has its own epoch, larger than all before. A
new epoch begun by hand ends the lineage: no earlier cursor is resumed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tape.core.ids import Epoch, GlobalSeq


class Term(NamedTuple):
    """A term's epoch, and the first position given in it."""

    epoch: Epoch
    first: GlobalSeq


def is_resumable(terms: Sequence[Term], epoch: int, position: int) -> bool:
    """Whether a cursor of an epoch may be resumed in a journal with these terms.

    It may if the epoch is one of theirs and every later term begins after the position.
    """
    later = [term.first for term in terms if term.epoch > epoch]
    return any(term.epoch == epoch for term in terms) and all(position < first for first in later)
