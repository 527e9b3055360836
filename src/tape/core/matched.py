"""What a matcher knows, and what it has made of a page: everything that is written together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tape.core.ids import Epoch, GlobalSeq
from tape.core.reaction import Reaction
from tape.core.registration import ReactionState
from tape.core.sequence import Request
from tape.core.task import MAX_DEPTH, ClaimRequest, Match, Task

FEW: Final = 64  # reactions whose room is looked up for each match
MAX_MATCHES: Final = 2_000  # more are sent in groups of a bounded size


class MatchCursor(NamedTuple):
    """Where the caught-up reactions are, and what is in force there; the version says which page was the last.

    `states` are those that have changed since the version that was asked about.
    """

    version: int
    cursor: GlobalSeq
    states: Mapping[str, ReactionState]


class PredicateErrors(NamedTuple):
    """How often a predicate has erred, and how at last."""

    errors: int
    last_error: str


class MatchedPage(NamedTuple):
    """What follows from a page, decided on a version of the pack in an epoch: all of it is written, or nothing when
    either is old.

    What is wanted is claimed as it is made, as far as nothing older waits and the limits allow it.
    """

    seen: int
    epoch: Epoch
    cursor: GlobalSeq
    states: Mapping[str, ReactionState]
    predicate_errors: Mapping[str, PredicateErrors]
    matches: Sequence[Match] = ()
    requests: Sequence[Request] = ()
    claim: ClaimRequest | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is tasks of a few reactions that are due at once, and nothing else."""
        if self.states or self.predicate_errors or self.requests or not 1 <= len(self.matches) <= MAX_MATCHES:
            return False
        if len({match.reaction.reaction_id for match in self.matches}) > FEW:
            return False
        return not any(match.reaction.debounce_ms or match.entry.depth >= MAX_DEPTH for match in self.matches)


class Recorded(NamedTuple):
    """The pack's new version, and what was claimed as it was made."""

    version: int
    tasks: Sequence[Task] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionRecord:
    """A reaction as the directory knows it: as it was last registered, and how its matching goes."""

    reaction: Reaction
    created_at_ms: int
    paused: str
    is_removed: bool
    cursor: GlobalSeq
    errors: int
    last_error: str
