"""Dispatches effects in the outbox to their connectors."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from tape.core import codec
from tape.core.claim import WORK_LEASE, check_owner, lease_ms
from tape.core.effect import Effect, Resolution, Semantics
from tape.core.retry import backoff
from tape.core.text import MAX_NAME, replace_unstorable
from tape.sdk.durable.calling import call_function, with_key
from tape.sdk.durable.errors import AckLost
from tape.sdk.nouns.node import AsyncNode
from tape.telemetry import log
from tape.work.deadline import DEADLINE, check_deadline

BASE: Final = timedelta(seconds=1)
ATTEMPTS: Final = 5

Connector = Callable[[Effect], Any]
"""Carries out an effect, async or plain, and returns the response. AckLost means that the outcome is unknown; any other
error means that the effect did not happen."""


class DispatchJob:
    """A polled job: dispatches each effect in the outbox whose connector this program has."""

    def __init__(
        self,
        node: AsyncNode,
        connectors: Mapping[str, Connector],
        *,
        owner: str,
        lease: timedelta = WORK_LEASE,
        deadline: timedelta = DEADLINE,
    ) -> None:
        self._node = node
        self._connectors = connectors
        self._owner = check_owner(owner)
        self._lease = lease
        self._deadline = check_deadline(deadline)

    async def due(self, limit: int) -> Sequence[Effect]:
        await self._node.dispatch.mark_lost_in_doubt()
        found = [await self._node.dispatch.due(connector, limit) for connector in self._connectors]
        return [effect for effects in found for effect in effects]

    def name(self, item: Effect) -> str:
        return f"{item.run_id}/{item.idempotency_key}"

    async def run(self, item: Effect) -> bool:
        claim = await self._node.dispatch.claim(item.run_id, item.idempotency_key, self._owner, self._lease)
        if claim.is_acquired:
            connector = self._connectors[item.connector]
            await carry_out(self._node, claim.effect, connector, self._lease, self._deadline)
        return claim.is_acquired


async def carry_out(
    node: AsyncNode,
    held: Effect,
    connector: Connector,
    lease: timedelta = WORK_LEASE,
    deadline: timedelta = DEADLINE,
) -> Effect:
    """Calls the connector for a claimed effect and records the outcome."""
    key = held.idempotency_key
    try:
        with with_key(key):
            response = codec.decode(codec.encode(await call_function(partial(connector, held), deadline)))
    except AckLost as lost:
        return await node.dispatch.attempt(held.run_id, key, held.claim.attempt, str(lost) or "no answer came")
    except Exception as error:  # noqa: BLE001 - whatever a connector raises is what came of it
        return await _failed(node, held, error, lease)
    reference = response.get("external_ref", "") if isinstance(response, dict) else ""
    named = str(reference)[:MAX_NAME]
    return await node.dispatch.observe(held.run_id, key, Resolution.CONFIRMED, external_ref=named, response=response)


async def _failed(node: AsyncNode, held: Effect, error: Exception, lease: timedelta) -> Effect:
    """An idempotent effect is tried again, up to a limit; any other has failed."""
    log.warning("effect.not_dispatched", run_id=held.run_id, tool=held.tool, error=type(error).__name__)
    error_text = replace_unstorable(f"{type(error).__name__}: {error}")
    tried = held.dispatch_attempts + 1
    if held.semantics is Semantics.NON_IDEMPOTENT or tried >= ATTEMPTS:
        resolution = Resolution.FAILED
        return await node.dispatch.observe(held.run_id, held.idempotency_key, resolution, error={"message": error_text})
    began_ms = held.claim.expires_at_ms - lease_ms(lease)  # by the store's clock
    next_ms = began_ms + backoff(tried, BASE, 0) // timedelta(milliseconds=1)
    return await node.dispatch.attempt(held.run_id, held.idempotency_key, held.claim.attempt, error_text, next_ms)
