"""Errors that a durable function gets instead of a step's result."""

from typing import Final

from tape.core.effect import Effect
from tape.core.errors import RunClosed, StaleClaim, TapeError, Unavailable, UsageError

CANNOT_CONTINUE: Final = (
    RunClosed,
    StaleClaim,
    Unavailable,
)  # the ledgers' errors for a worker that may not or cannot continue


class EffectFailed(TapeError):
    """An effect did not happen; every execution of the function gets the same error."""

    def __init__(self, tool: str, error_json: str) -> None:
        super().__init__(tool, error_json)
        self.tool = tool
        self.error_json = error_json

    def __str__(self) -> str:
        return f"effect {self.tool!r} failed: {self.error_json or 'no reason was given'}"


class EffectUnknown(TapeError):
    """Whether an effect happened is unknown; check and reconcile it."""

    def __init__(self, tool: str, idempotency_key: str) -> None:
        super().__init__(tool, idempotency_key)
        self.tool = tool
        self.idempotency_key = idempotency_key

    def __str__(self) -> str:
        return f"whether effect {self.tool!r} took place is unknown; look for {self.idempotency_key!r} and reconcile it"


class StepRefused(UsageError):
    """A step that a durable function cannot take here, or that differs from the one in the history of its run.

    The run stays as it is, for a corrected program.
    """


class AckLost(Exception):
    """Raised in an effect: the call was made, and no answer came."""


class Interrupted(BaseException):
    """Ends a function that cannot continue here and now; the next worker executes it again.

    It is no Exception, so that `except Exception` in a function does not catch it.
    """


class Parked(Interrupted):
    """The run waits at a gate, and continues when a signal arrives."""


def refusal_in(error: BaseException | None) -> StepRefused | None:
    """The refused step that an error is, contains or comes from."""
    seen: set[int] = set()
    rest = [error]
    while rest:
        each = rest.pop()
        if isinstance(each, StepRefused):
            return each
        if each is not None and id(each) not in seen:  # an error may be its own cause
            seen.add(id(each))
            rest += [each.__cause__, each.__context__]
            rest += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return None


def failure(effect: Effect) -> TapeError:
    """The error of an effect without a result."""
    if effect.is_settled:
        return EffectFailed(effect.tool, effect.error_json)
    return EffectUnknown(effect.tool, effect.idempotency_key)
