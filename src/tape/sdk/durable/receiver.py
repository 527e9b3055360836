"""Effects that arrive as messages of a broker, perhaps repeatedly: each is carried out once."""

from datetime import timedelta

from tape.core import codec
from tape.core.claim import WORK_LEASE, check_owner
from tape.core.effect import Effect, EffectStatus
from tape.core.errors import TapeError, UsageError
from tape.sdk.durable.dispatch_job import Connector, carry_out
from tape.sdk.nouns.node import AsyncNode
from tape.telemetry import log


def message_of(effect: Effect) -> bytes:
    """The message for a broker: only the key of the effect; the ledger has the rest."""
    return codec.encode({"run_id": effect.run_id, "idempotency_key": effect.idempotency_key}).encode()


class Receiver:
    """Carries out the effects that messages name; the ledger's claim makes repeated deliveries harmless."""

    def __init__(self, node: AsyncNode, connector: Connector, *, owner: str, lease: timedelta = WORK_LEASE) -> None:
        self._node = node
        self._connector = connector
        self._owner = check_owner(owner)
        self._lease = lease

    async def receive(self, message: bytes) -> bool:
        """Whether the broker may acknowledge the message: it was handled now or before, or never can be."""
        try:
            run_id, key = _named(message)
            claim = await self._node.dispatch.claim(run_id, key, self._owner, self._lease)
        except (UsageError, UnicodeError) as error:
            log.warning("message.dropped", error=type(error).__name__)
            return True
        except TapeError as error:
            log.warning("message.refused", error=type(error).__name__)
            return False
        if not claim.is_acquired:
            return claim.effect.status is not EffectStatus.PENDING
        await carry_out(self._node, claim.effect, self._connector, self._lease)
        return True


def _named(message: bytes) -> tuple[str, str]:
    body = codec.decode(message)
    names = (body.get("run_id"), body.get("idempotency_key")) if isinstance(body, dict) else (None, None)
    if not isinstance(names[0], str) or not isinstance(names[1], str):
        raise UsageError("a message names a run_id and an idempotency_key")
    return names[0], names[1]
