"""What could not be written, and a lake or a cursor that is not the journal's, as errors of ours that say why."""

import re
from collections.abc import Sequence
from typing import Final

from tape.core.errors import Conflict, Corrupt, TapeError, Unavailable
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import NO_EPOCH
from tape.core.term import Term, is_resumable

WAY_OUT: Final = (
    "it is another journal's lake, or the journal lost entries in a restore or a promotion: move the lake away and run "
    "tape lake sync again (docs/runbooks/rebuild-the-lake.md)"
)

_corrupt: Final = re.compile(r"\bCorrupt: entry (\d+): (.+)").search  # as a traceback of a Python worker ends


def write_error(error: Exception, what: str) -> TapeError:
    """What Spark or Arrow raises of something it could not write, as ours."""
    if isinstance(error, TapeError):
        return error
    if found := _corrupt(str(error)):
        return Corrupt(found[2].strip(), GlobalSeq(int(found[1])))
    reason = next((line for line in str(error).splitlines() if "No space left" in line), str(error).partition("\n")[0])
    return Unavailable(f"{what} was not written: {type(error).__name__}: {reason.strip()}")


def lake_beyond_journal(through: int, head: int) -> Conflict:
    """A lake that holds positions which the journal has not."""
    return Conflict(f"the lake ends at {through} and the journal at {head}: {WAY_OUT}")


def check_same(theirs: Entry, ours: Entry) -> None:
    """Refuses a lake whose entry is not the journal's at that position."""
    if theirs != ours:
        found = f"checksum {theirs.crc:08x}, epoch {theirs.epoch}; in the journal {ours.crc:08x}, {ours.epoch}"
        raise Conflict(f"entry {ours.global_seq} of the lake is not the journal's ({found}): {WAY_OUT}")


def check_resumable(terms: Sequence[Term], epoch: int, position: int) -> None:
    """Refuses to go on from a position whose entry may be another one in a journal of these terms."""
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
