"""Decisions, as a program records and finds them."""

from collections.abc import Sequence

from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue, encode_optional
from tape.core.decision import Decision
from tape.core.ids import RunId
from tape.core.page import Page
from tape.operations.effects import GetDecision, ListDecisions, RecordDecision
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.whole_list import read_all


class Decisions:
    """What a run's model decided, in order."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def record(
        self,
        run_id: str,
        decision_index: int,
        *,
        model: str = "",
        request: JsonValue = None,
        response: JsonValue = None,
        rationale: str = "",
        policy_version: str = "",
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> Decision:
        """The stored decision: this one, or the one that was there first."""
        decision = RecordDecision(
            run_id=RunId(run_id),
            decision_index=decision_index,
            model=model,
            request_json=encode_optional(request),
            response_json=encode_optional(response),
            rationale=rationale,
            policy_version=policy_version,
            fence=fence,
        )
        return await self._ledgers.call(decision, caller)

    async def get(self, run_id: str, decision_index: int) -> Decision | None:
        return await self._ledgers.call(GetDecision(run_id=run_id, decision_index=decision_index))

    async def list_all(self, run_id: str, *, model: str = "") -> Sequence[Decision]:
        """All of a run, in order; or those of one model."""
        return await read_all(self._ledgers, ListDecisions(run_id=run_id, model=model))

    async def list(self, run_id: str, *, model: str = "", limit: int = PAGE, cursor: str = "") -> Page[Decision]:
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        return await self._ledgers.call(ListDecisions(run_id=run_id, model=model, limit=limit, cursor=cursor))
