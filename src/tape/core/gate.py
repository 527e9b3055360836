"""A gate: where a run waits for a signal from outside."""

from dataclasses import dataclass

from tape.core.ids import RunId
from tape.core.run_state import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The signals sent to a gate, in order: the n-th wait gets the n-th signal, however often it asks."""

    run_id: RunId
    gate: str
    context_json: str = ""
    resolutions: tuple[str, ...] = ()
    waiting: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitResult:
    """The result of a wait: the signal's payload, or None while the run is parked."""

    gate: Gate
    resolution_json: str | None = None

    @property
    def is_delivered(self) -> bool:
        return self.resolution_json is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalResult:
    """The result of a signal: whether the run accepted it, and the run's new status if it may continue."""

    is_accepted: bool
    run_id: RunId
    run_status: RunStatus | None = None
