"""A page of reactions ends before its answer is too large."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tape.core.caller import PLAIN
from tape.core.ids import GlobalSeq
from tape.core.matched import ReactionRecord
from tape.core.page import ANSWER_BYTES
from tape.core.reaction import Reaction
from tape.matcher.reactions import Reactions
from tape.operations.reactions import ListReactions
from tape.wire.messages.tasks import RECORD

NAMES = [f"r{number:04}" for number in range(1_000)]


class ManyReactions:
    async def listed(self, subject_pattern: str, limit: int, after: str) -> Sequence[ReactionRecord]:
        return [record(name) for name in NAMES if name > after][:limit]


def record(name: str) -> ReactionRecord:
    reaction = Reaction(reaction_id=name, predicate_cel="é" * 2_048)
    return ReactionRecord(
        reaction=reaction, created_at_ms=1, paused="", is_removed=False, cursor=GlobalSeq(1), errors=0, last_error="x"
    )


async def head() -> GlobalSeq:
    return GlobalSeq(1)


async def test_an_answer_carries_as_many_reactions_as_fit() -> None:
    store: Any = SimpleNamespace(reactions=ManyReactions(), head=head)
    handlers = Reactions(store, store)

    first = await handlers.listed(ListReactions(), PLAIN)
    rest = await handlers.listed(ListReactions(cursor=first.next_cursor), PLAIN)

    assert sum(RECORD.message(each).ByteSize() for each in first.rows) <= ANSWER_BYTES and len(first.rows) > 900
    assert [each.reaction.reaction_id for each in (*first.rows, *rest.rows)] == NAMES and rest.next_cursor == ""
