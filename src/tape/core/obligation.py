"""An obligation: what must be undone when a run fails."""

from dataclasses import dataclass
from enum import StrEnum

from tape.core.claim import UNCLAIMED, Claim
from tape.core.codec import JsonValue
from tape.core.effect import ATTEMPTS
from tape.core.ids import RunId


class ObligationStatus(StrEnum):
    PENDING = "pending"
    COMMITTED = "committed"
    COMPENSATED = "compensated"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """Where an obligation stands. Numbers of a run rise, and the highest is met first.

    One that is `at_once` does not wait for the run to fail: what was done twice is undone in any case.
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
        """The name of what undoes it, which whoever meets it has registered."""
        return self.compensator_ref or self.kind

    @property
    def summary(self) -> dict[str, JsonValue]:
        """What people want to know of one that is open: what it waits for."""
        return {
            "number": self.number, "kind": self.kind, "app": self.app, "compensator": self.compensator,
            "status": self.status.value, "attempts": self.attempts, "last_error": self.last_error,
        }  # fmt: skip

    @property
    def due_at_ms(self) -> int:
        """When it may be claimed next."""
        is_leased = self.status is ObligationStatus.COMMITTED
        return self.claim.expires_at_ms if is_leased else self.next_attempt_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ObligationClaim:
    """What came of claiming an obligation; who did not get it sees how it stands."""

    obligation: Obligation
    is_acquired: bool
