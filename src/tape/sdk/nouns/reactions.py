"""Reactions, as a program registers, looks at and stops them."""

from dataclasses import asdict

from tape.core.explanation import Explanation
from tape.core.matched import ReactionRecord
from tape.core.page import Page
from tape.core.reaction import Reaction
from tape.operations.fields import MAX_LIMIT
from tape.operations.ledgers import Ledgers
from tape.operations.reactions import (
    ExplainReaction,
    GetReaction,
    ListReactions,
    PauseReaction,
    RegisterReaction,
    RemoveReaction,
    ResumeReaction,
)


class Reactions:
    """What happens when entries match."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def register(self, reaction: Reaction) -> ReactionRecord:
        """Registers a reaction, or changes it; matches are never repeated."""
        return await self._ledgers.call(RegisterReaction(**asdict(reaction)))

    async def list(
        self, subject_pattern: str = "", *, limit: int = MAX_LIMIT, cursor: str = ""
    ) -> Page[ReactionRecord]:
        """A page of all reactions in the order of their ids, or of those with exactly one pattern."""
        return await self._ledgers.call(ListReactions(subject_pattern=subject_pattern, limit=limit, cursor=cursor))

    async def get(self, reaction_id: str) -> ReactionRecord:
        """A reaction as it was last registered, and how far it is matched."""
        return await self._ledgers.call(GetReaction(reaction_id=reaction_id))

    async def pause(self, reaction_id: str, reason: str = "paused") -> ReactionRecord:
        """Stops matching and claiming until the reaction is resumed."""
        return await self._ledgers.call(PauseReaction(reaction_id=reaction_id, reason=reason))

    async def resume(self, reaction_id: str) -> ReactionRecord:
        """Lets a reaction continue where it was paused."""
        return await self._ledgers.call(ResumeReaction(reaction_id=reaction_id))

    async def remove(self, reaction_id: str) -> bool:
        """Removes a reaction; whether there was one. Its pending tasks become dead."""
        return await self._ledgers.call(RemoveReaction(reaction_id=reaction_id))

    async def explain(self, reaction_id: str, global_seq: int) -> Explanation:
        """Why the entry at a position became a task of a reaction, or why not."""
        return await self._ledgers.call(ExplainReaction(reaction_id=reaction_id, global_seq=global_seq))
