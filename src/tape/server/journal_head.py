"""The journal's head, or an error after two seconds; and the epoch of positions in it."""

from collections.abc import Sequence
from typing import Final

import anyio

from tape.bus.journal import Journal
from tape.core.errors import TapeError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq
from tape.core.server_unavailable import ServerUnavailable

HEAD_S: Final = 2.0


async def head_of(journal: Journal) -> GlobalSeq:
    """The last position; raises if the store does not answer."""
    try:
        with anyio.move_on_after(HEAD_S):
            return await journal.head()
    except TapeError as error:
        raise ServerUnavailable("the store does not answer") from error
    raise ServerUnavailable(f"the store has not answered within {HEAD_S:g} s")


async def head_or_none(journal: Journal) -> GlobalSeq | None:
    """The head, or None if the store does not answer."""
    try:
        return await head_of(journal)
    except ServerUnavailable:
        return None


def epoch_of_positions(entries: Sequence[Entry], known: Epoch) -> Epoch:
    """The epoch in which the positions of an append can be read; `known` is the journal's before the append.

    The entries are of an earlier epoch if a repeated append has found them, and of a later one if it began meanwhile.
    """
    return max([known, *(entry.epoch for entry in entries)])
