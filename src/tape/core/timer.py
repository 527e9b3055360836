"""A timer: work for a run at a time, done at least once."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tape.core.claim import UNCLAIMED, Claim
from tape.core.ids import RunId

GATE_TIMEOUT: Final = "gate_timeout"
BUILT_IN: Final = frozenset({GATE_TIMEOUT})


class TimerStatus(StrEnum):
    SET = "set"
    FIRED = "fired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer's state; while it is claimed, it is due again when the lease ends."""

    run_id: RunId
    timer_id: str
    fire_at_ms: int
    kind: str = ""
    payload_json: str = ""
    status: TimerStatus = TimerStatus.SET
    claim: Claim = UNCLAIMED
    app: str = ""

    @property
    def served_app(self) -> str:
        """The app whose workers handle it; "" means any, because Tape itself handles built-in kinds."""
        return "" if self.kind in BUILT_IN else self.app

    @property
    def due_at_ms(self) -> int | None:
        if self.status is not TimerStatus.SET:
            return None
        return max(self.fire_at_ms, self.claim.expires_at_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerClaim:
    timer: Timer
    is_acquired: bool
