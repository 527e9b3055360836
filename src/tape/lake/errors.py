"""Translates failed writes of Spark and Arrow, and cursors of another history, into Tape's errors."""

import re
from collections.abc import Sequence
from typing import Final

from tape.core.errors import Conflict, Corrupt, TapeError, Unavailable
from tape.core.ids import GlobalSeq
from tape.core.ports import NO_EPOCH
from tape.core.term import Term, is_resumable

_corrupt: Final = re.compile(r"\bCorrupt: entry (\d+): (.+)").search  # the last line of a Python worker's traceback


def write_error(error: Exception, what: str) -> TapeError:
    """Translates what Spark or Arrow raised while it wrote `what`."""
    if isinstance(error, TapeError):
        return error
    if found := _corrupt(str(error)):
        return Corrupt(found[2].strip(), GlobalSeq(int(found[1])))
    reason = next((line for line in str(error).splitlines() if "No space left" in line), str(error).partition("\n")[0])
    return Unavailable(f"{what} was not written: {type(error).__name__}: {reason.strip()}")


def check_resumable(terms: Sequence[Term], epoch: int, position: int) -> None:
    """Raises Conflict for a position at which a journal of these terms may hold another entry."""
    if is_resumable(terms, epoch, position):
        return
    place = f"position {position} of {'an unknown epoch' if epoch == NO_EPOCH else f'epoch {epoch}'}"
    if epoch not in {term.epoch for term in terms}:
        raise Conflict(
            f"{place} is not of this journal, whose epoch is {terms[-1].epoch}: remove what the query wrote and start "
            "it with a new checkpoint (docs/runbooks/restore-a-backup.md)"
        )
    fork = min((term for term in terms if term.epoch > epoch), key=lambda term: term.first)
    raise Conflict(
        f"{place} was lost in a promotion, and epoch {fork.epoch} begins at {fork.first}: remove what the query wrote "
        f"of {fork.first} and later and start it with a new checkpoint and fromGlobalSeq={fork.first - 1}, or read a "
        "batch again (docs/runbooks/promote-a-standby.md)"
    )
