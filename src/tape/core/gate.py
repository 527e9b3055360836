"""A gate: where a run waits for somebody outside to say something."""

from dataclasses import dataclass

from tape.core.ids import RunId
from tape.core.run_state import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What was said at a gate, in order: the n-th wait gets the n-th answer, however often it asks."""

    run_id: RunId
    gate: str
    context_json: str = ""
    resolutions: tuple[str, ...] = ()
    waiting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitResult:
    """What came of waiting: the answer, or None while the run is parked."""

    gate: Gate
    resolution_json: str | None = None

    @property
    def is_delivered(self) -> bool:
        return self.resolution_json is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalResult:
    """What came of sending: whether it was taken, by which run, and whether that run may go on because of it."""

    is_accepted: bool
    run_id: RunId
    run_status: RunStatus | None = None
