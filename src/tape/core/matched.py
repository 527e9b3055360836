"""What a matcher reads before it matches, and the page of matches that it writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tape.core.ids import Epoch, GlobalSeq
from tape.core.reaction import Reaction
from tape.core.registration import ReactionState
from tape.core.sequence import AppendRequest
from tape.core.task import MAX_DEPTH, ClaimRequest, Match, Task

REACTION_BYTES: Final = 256  # an upper bound of the numbers of a reaction
MAX_REACTIONS: Final = 64  # for more, a page is written in several statements
MAX_MATCHES: Final = 2_000  # more are sent in groups


class MatchCursor(NamedTuple):
    """The position up to which all caught-up reactions are matched; each written page raises the version by one.

    `states` are the reactions that have changed since the version that the caller knows.
    """

    version: int
    cursor: GlobalSeq
    states: Mapping[str, ReactionState]


class PredicateErrors(NamedTuple):
    """How many errors a predicate had on a page, and the last one."""

    errors: int
    last_error: str


class MatchedPage(NamedTuple):
    """The matches of a page, based on a version of the match cursor and an epoch.

    The store writes all of it, or nothing if either is not the newest. With `claim` it claims tasks as it inserts them,
    as far as no older task of the reaction is due and its limits allow.
    """

    version: int
    epoch: Epoch
    cursor: GlobalSeq
    states: Mapping[str, ReactionState]
    predicate_errors: Mapping[str, PredicateErrors]
    matches: Sequence[Match] = ()
    requests: Sequence[AppendRequest] = ()
    claim: ClaimRequest | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it holds only tasks that are due at once, of at most MAX_REACTIONS reactions."""
        if self.states or self.predicate_errors or self.requests or not 1 <= len(self.matches) <= MAX_MATCHES:
            return False
        if len({match.reaction.reaction_id for match in self.matches}) > MAX_REACTIONS:
            return False
        return not any(match.reaction.debounce_ms or match.entry.depth >= MAX_DEPTH for match in self.matches)


class Recorded(NamedTuple):
    """The new version of the match cursor, and the tasks that were claimed as they were inserted."""

    version: int
    tasks: Sequence[Task] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionRecord:
    """A reaction as it was last registered, and how far it is matched: `lag` entries are still to come."""

    reaction: Reaction
    created_at_ms: int
    paused: str
    is_removed: bool
    cursor: GlobalSeq
    errors: int
    last_error: str
    lag: int = 0

    @property
    def size(self) -> int:
        """An upper bound of its encoded size in bytes."""
        rule = self.reaction
        texts = (rule.reaction_id, rule.subject_pattern, rule.name, rule.predicate_cel, rule.agent_app)
        others = (rule.publish_target, self.paused, self.last_error)
        return REACTION_BYTES + len("".join((*texts, *others)).encode())
