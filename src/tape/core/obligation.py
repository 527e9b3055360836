"""An obligation: an effect that must be undone if its run fails."""

from dataclasses import dataclass
from enum import StrEnum

from tape.core.claim import UNCLAIMED, Claim
from tape.core.effect import ATTEMPTS
from tape.core.ids import RunId


class ObligationStatus(StrEnum):
    PENDING = "pending"
    COMMITTED = "committed"
    COMPENSATED = "compensated"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """An obligation's state. Numbers rise within a run, and the highest is compensated first.

    With `at_once` it does not wait for the run to fail, as when an effect happened twice.
    """

    run_id: RunId
    number: int
    effect_key: str
    kind: str
    status: ObligationStatus = ObligationStatus.PENDING
    payload_json: str = ""
    compensator_ref: str = ""
    external_ref: str = ""
    max_attempts: int = ATTEMPTS
    attempts: int = 0
    next_attempt_at_ms: int = 0
    claim: Claim = UNCLAIMED
    last_error: str = ""
    result_json: str = ""
    at_once: bool = False
    registered_at_ms: int = 0
    app: str = ""

    @property
    def is_owed(self) -> bool:
        return self.status in (ObligationStatus.PENDING, ObligationStatus.COMMITTED)

    @property
    def compensator(self) -> str:
        """The registered name of the function that undoes it."""
        return self.compensator_ref or self.kind

    @property
    def due_at_ms(self) -> int:
        """When it may be claimed next."""
        is_leased = self.status is ObligationStatus.COMMITTED
        return self.claim.expires_at_ms if is_leased else self.next_attempt_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ObligationClaim:
    """The result of claiming an obligation; a caller that did not get it sees its state."""

    obligation: Obligation
    is_acquired: bool
