"""Fires timers: a gate's time-out needs no handler, other kinds call the one registered for them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from tape.core.claim import WORK_LEASE, check_owner
from tape.core.timer import GATE_TIMEOUT, Timer
from tape.sdk.durable.calling import call_function
from tape.sdk.nouns.node import AsyncNode
from tape.telemetry import log


class TimerJob:
    """A polled job: fires each due timer of a kind that this program handles, of its app or of any."""

    def __init__(
        self,
        node: AsyncNode,
        *,
        owner: str,
        handlers: Mapping[str, Callable[[Timer], Any]] | None = None,
        lease: timedelta = WORK_LEASE,
    ) -> None:
        self._node = node
        self._owner = check_owner(owner)
        self._handlers = {GATE_TIMEOUT: _nothing, **(handlers or {})}
        self._lease = lease

    async def due(self, limit: int) -> Sequence[Timer]:
        return await self._node.timers.due(limit, kinds=[*self._handlers])

    def name(self, item: Timer) -> str:
        return f"{item.run_id}/{item.timer_id}"

    async def run(self, item: Timer) -> bool:
        """Calls the handler; after a failure it is called again when the lease has ended."""
        claim = await self._node.timers.claim(item.run_id, item.timer_id, self._owner, self._lease)
        if not claim.is_acquired:
            return False
        try:
            await call_function(partial(self._handlers[item.kind], claim.timer))
        except Exception as error:  # noqa: BLE001 - a handler may raise anything, and is called again
            log.warning("timer.failed", run_id=item.run_id, kind=item.kind, error=type(error).__name__)
            return False
        await self._node.timers.fire(item.run_id, item.timer_id, claim.timer.claim.attempt)
        return True


async def _nothing(timer: Timer) -> None:
    """The ledger itself sends the signal."""
