"""Compensates obligations with the functions that this program has registered."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

import anyio

from tape.core import codec
from tape.core.claim import WORK_LEASE, check_owner
from tape.core.errors import TapeError
from tape.core.obligation import Obligation
from tape.core.retry import backoff
from tape.core.text import replace_unstorable
from tape.sdk.durable.calling import call_function, with_key
from tape.sdk.durable.compensators import Compensator, compensators
from tape.sdk.nouns.node import AsyncNode
from tape.telemetry import log

BASE: Final = timedelta(seconds=1)
LOOK_S: Final = 60.0
MAX_UNSERVED: Final = 100


class CompensationJob:
    """A polled job: compensates each due obligation whose compensator this program has registered.

    `inverses` are additional compensators by name.
    """

    def __init__(
        self,
        node: AsyncNode,
        *,
        owner: str,
        inverses: Mapping[str, Compensator] | None = None,
        lease: timedelta = WORK_LEASE,
    ) -> None:
        self._node = node
        self._owner = check_owner(owner)
        self._inverses = inverses or {}
        self._lease = lease
        self._unserved: set[str] = set()
        self._looks_at = 0.0

    async def due(self, limit: int) -> Sequence[Obligation]:
        known = self._known()
        await self._look_for_unserved(known)
        return await self._node.obligations.due(limit, compensators=[*known])

    def name(self, item: Obligation) -> str:
        return f"{item.run_id}/{item.number}"

    async def run(self, item: Obligation) -> bool:
        claim = await self._node.obligations.claim(item.run_id, item.number, self._owner, self._lease)
        if not claim.is_acquired:
            return False
        held = claim.obligation
        try:
            result = codec.decode(codec.encode(await self._undo(held)))
        except Exception as error:  # noqa: BLE001 - whatever an inverse raises is a failed attempt
            await self._failed(held, error)
        else:
            await self._node.obligations.resolve(held.run_id, held.number, result=result, attempt=held.claim.attempt)
        return True

    async def _undo(self, held: Obligation) -> Any:
        """Calls the compensator with the effect's result and arguments."""
        inverse = self._known()[held.compensator]
        effect = await self._node.effects.get(held.run_id, held.effect_key)
        result = codec.decode(effect.response_json) if effect is not None and effect.response_json else None
        asked: Any = codec.decode(held.payload_json) if held.payload_json else None
        call = partial(inverse, result, *_args(asked), **_kwargs(asked))
        with with_key(f"{held.effect_key}/{held.kind}"):
            return await call_function(call)

    def _known(self) -> Mapping[str, Compensator]:
        return {**compensators.known(), **self._inverses}

    async def _look_for_unserved(self, known: Mapping[str, Compensator]) -> None:
        """Logs each compensator, once, that this app's obligations need and this program lacks."""
        if anyio.current_time() < self._looks_at:
            return
        self._looks_at = anyio.current_time() + LOOK_S
        for owed in await self._node.obligations.due(MAX_UNSERVED):
            if owed.compensator not in known and owed.compensator not in self._unserved:
                self._unserved.add(owed.compensator)
                log.warning("obligation.unserved", run_id=owed.run_id, kind=owed.kind, compensator=owed.compensator)

    async def _failed(self, held: Obligation, error: Exception) -> None:
        log.warning("obligation.failed", run_id=held.run_id, kind=held.kind, error=type(error).__name__)
        later = backoff(held.attempts + 1, BASE, 0) // timedelta(milliseconds=1)
        next_ms = held.claim.expires_at_ms - self._lease // timedelta(milliseconds=1) + later
        text = replace_unstorable(str(error) if isinstance(error, TapeError) else f"{type(error).__name__}: {error}")
        await self._node.obligations.attempt(held.run_id, held.number, held.claim.attempt, text, next_ms)


def _is_call(asked: Any) -> bool:
    return isinstance(asked, dict) and asked.keys() == {"args", "kwargs"}


def _args(asked: Any) -> list[Any]:
    if _is_call(asked):
        return list(asked["args"])
    return [] if asked is None else [asked]


def _kwargs(asked: Any) -> dict[str, Any]:
    return dict(asked["kwargs"]) if _is_call(asked) else {}
