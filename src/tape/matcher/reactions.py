"""Handles the operations of reactions."""

from dataclasses import replace

from tape.bus.journal import Journal
from tape.core.caller import Caller
from tape.core.errors import NotFound
from tape.core.explanation import Explanation
from tape.core.matched import ReactionRecord
from tape.core.page import Page, decode_cursor, encode_cursor, fit_answer
from tape.core.ports import Store
from tape.matcher.explain import explain
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
    """The reactions of a store; a store without them raises UsageError when it is asked."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    async def register(self, request: RegisterReaction, caller: Caller) -> ReactionRecord:
        return await self._shown(await self._store.reactions.register(request.reaction))

    async def listed(self, request: ListReactions, caller: Caller) -> Page[ReactionRecord]:
        (after,) = decode_cursor(request.cursor, str, question=request.question) or ("",)
        found = await self._store.reactions.listed(request.subject_pattern, request.limit + 1, str(after))
        head = await self._journal.head()
        carried = fit_answer((_with_lag(each, head) for each in found[: request.limit]), lambda record: record.size)
        if len(carried) == len(found):
            return Page(carried)
        return Page(carried, encode_cursor((carried[-1].reaction.reaction_id,), request.question))

    async def get(self, request: GetReaction, caller: Caller) -> ReactionRecord:
        record = await self._store.reactions.find(request.reaction_id)
        if record is None:
            raise NotFound(f"there is no reaction {request.reaction_id!r}")
        return await self._shown(record)

    async def pause(self, request: PauseReaction, caller: Caller) -> ReactionRecord:
        return await self._shown(await self._store.reactions.pause(request.reaction_id, request.reason))

    async def resume(self, request: ResumeReaction, caller: Caller) -> ReactionRecord:
        return await self._shown(await self._store.reactions.resume(request.reaction_id))

    async def remove(self, request: RemoveReaction, caller: Caller) -> bool:
        return await self._store.reactions.remove(request.reaction_id)

    async def _shown(self, record: ReactionRecord) -> ReactionRecord:
        return _with_lag(record, await self._journal.head())

    async def explain(self, request: ExplainReaction, caller: Caller) -> Explanation:
        return await explain(self._store, self._journal, request.reaction_id, request.global_seq)


def _with_lag(record: ReactionRecord, head: int) -> ReactionRecord:
    return replace(record, lag=max(0, head - record.cursor))
