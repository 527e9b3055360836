"""Operations of reactions: they are registered, paused, resumed and removed, and what they did can be explained."""

from dataclasses import dataclass
from typing import Final

from tape.core.explanation import Explanation
from tape.core.matched import ReactionRecord
from tape.core.reaction import Reaction, check_reaction_id, from_definition
from tape.core.registration import check_reason
from tape.core.subject import Pattern
from tape.core.text import check_count
from tape.operations.operation import MAX_LIMIT, Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReaction:
    """The base of requests that name a reaction."""

    reaction_id: str

    def __post_init__(self) -> None:
        check_reaction_id(self.reaction_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterReaction(Reaction, OperationRequest[ReactionRecord]):
    """Registers a reaction, or changes it; matches are never repeated."""

    @property
    def reaction(self) -> Reaction:
        return from_definition(self.definition())


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReactions(PageRequest[ReactionRecord]):
    """Reactions in the order of their ids: all, or those with exactly one subject pattern."""

    subject_pattern: str = ""
    limit: int = MAX_LIMIT

    def __post_init__(self) -> None:
        PageRequest.__post_init__(self)
        if self.subject_pattern:
            object.__setattr__(self, "subject_pattern", Pattern.parse(self.subject_pattern).text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReaction(OfReaction, OperationRequest[ReactionRecord]):
    """A reaction as it was last registered, how far it is matched, and the errors of its predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseReaction(OfReaction, OperationRequest[ReactionRecord]):
    """Stops matching and claiming for a reaction until it is resumed."""

    reason: str = "paused"

    def __post_init__(self) -> None:
        OfReaction.__post_init__(self)
        check_reason(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeReaction(OfReaction, OperationRequest[ReactionRecord]):
    """Lets a reaction continue where it was paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveReaction(OfReaction, OperationRequest[bool]):
    """Removes a reaction; whether there was one. Its pending tasks become dead, claimed ones can still be settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReaction(OfReaction, OperationRequest[Explanation]):
    """Why the entry at a position became a task of a reaction, or why not."""

    global_seq: int

    def __post_init__(self) -> None:
        OfReaction.__post_init__(self)
        check_count("global_seq", self.global_seq, least=1)


OPERATIONS: Final = (
    Operation("reaction.register", RegisterReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.list", ListReactions, Access.READ, Scope.REACTION, Repeat.SAFE, Shape.PAGE),
    Operation("reaction.get", GetReaction, Access.READ, Scope.REACTION, Repeat.SAFE),
    Operation("reaction.pause", PauseReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.resume", ResumeReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.remove", RemoveReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.explain", ExplainReaction, Access.READ, Scope.REACTION, Repeat.SAFE),
)
