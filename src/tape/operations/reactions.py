"""Operations of reactions: they are registered, paused, resumed and removed, and what they did can be explained."""

from dataclasses import dataclass
from typing import Final

from tape.core.explanation import Explanation
from tape.core.matched import ReactionRecord
from tape.core.reaction import Reaction, from_definition
from tape.core.subject import Pattern
from tape.operations.fields import MAX_LIMIT
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReaction:
    """The base of requests that name a reaction."""

    reaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterReaction(OperationRequest[ReactionRecord], Reaction):
    """Registers a reaction, or changes it; matches are never repeated."""

    @property
    def reaction(self) -> Reaction:
        return from_definition(self.definition())


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReactions(PageRequest[ReactionRecord]):
    """Reactions in the order of their ids: all, or those with exactly one subject pattern."""

    subject_pattern: str = ""
    limit: int = MAX_LIMIT

    def check(self) -> None:
        if self.subject_pattern:
            object.__setattr__(self, "subject_pattern", Pattern.parse(self.subject_pattern).text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReaction(OperationRequest[ReactionRecord], OfReaction):
    """A reaction as it was last registered, how far it is matched, and the errors of its predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseReaction(OperationRequest[ReactionRecord], OfReaction):
    """Stops matching and claiming for a reaction until it is resumed."""

    reason: str = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeReaction(OperationRequest[ReactionRecord], OfReaction):
    """Lets a reaction continue where it was paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveReaction(OperationRequest[bool], OfReaction):
    """Removes a reaction; whether there was one. Its pending tasks become dead, claimed ones can still be settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReaction(OperationRequest[Explanation], OfReaction):
    """Why the entry at a position became a task of a reaction, or why not."""

    global_seq: int


OPERATIONS: Final = (
    Operation("reaction.register", RegisterReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.list", ListReactions, Access.READ, Scope.REACTION, Repeat.SAFE, Shape.PAGE),
    Operation("reaction.get", GetReaction, Access.READ, Scope.REACTION, Repeat.SAFE),
    Operation("reaction.pause", PauseReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.resume", ResumeReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.remove", RemoveReaction, Access.WRITE, Scope.REACTION, Repeat.SAME),
    Operation("reaction.explain", ExplainReaction, Access.READ, Scope.REACTION, Repeat.SAFE),
)
