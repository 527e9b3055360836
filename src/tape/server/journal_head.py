"""The journal's head, or an error after two seconds."""

from typing import Final

import anyio

from tape.bus.journal import Journal
from tape.core.errors import TapeError
from tape.core.ids import GlobalSeq
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
