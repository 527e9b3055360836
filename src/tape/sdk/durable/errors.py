"""How a durable function is told that it cannot simply go on."""

from typing import Final

from tape.core.effect import Effect
from tape.core.errors import RunClosed, StaleClaim, TapeError, Unavailable, UsageError

CANNOT_CONTINUE: Final = (
    RunClosed,
    StaleClaim,
    Unavailable,
)  # what a worker that may not or cannot go on gets from the ledgers


class EffectFailed(TapeError):
    """An effect did not take place; the same is raised however often the function is run again."""

    def __init__(self, tool: str, error_json: str) -> None:
        super().__init__(tool, error_json)
        self.tool = tool
        self.error_json = error_json

    def __str__(self) -> str:
        return f"effect {self.tool!r} failed: {self.error_json or 'nobody said why'}"


class EffectUnknown(TapeError):
    """Nobody knows whether an effect took place; somebody must look and reconcile it."""

    def __init__(self, tool: str, idempotency_key: str) -> None:
        super().__init__(tool, idempotency_key)
        self.tool = tool
        self.idempotency_key = idempotency_key

    def __str__(self) -> str:
        return f"whether effect {self.tool!r} took place is unknown; look for {self.idempotency_key!r} and reconcile it"


class StepRefused(UsageError):
    """A step was asked for where a durable function cannot take one; the run is left as it is, for a corrected one."""


class ConcurrentSteps(StepRefused):
    """A step began while another one of the same run was under way in another task.

    Steps have numbers in the order in which they begin. Another execution may begin concurrent steps in another order,
    and would get the recorded results of the wrong ones.
    """


class AckLost(Exception):
    """Raised in an effect: it was asked for, and no answer came."""


class Interrupted(BaseException):
    """Ends a function that cannot go on here and now; whoever takes its run begins it again.

    Nobody who catches errors means this one, so it is none.
    """


class Parked(Interrupted):
    """The run waits at a gate; it goes on when the answer is there."""


def refusal_in(error: BaseException | None) -> StepRefused | None:
    """The refusal of a step that an error is, contains or comes from."""
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
    """What an effect without a result is told as."""
    if effect.is_settled:
        return EffectFailed(effect.tool, effect.error_json)
    return EffectUnknown(effect.tool, effect.idempotency_key)
