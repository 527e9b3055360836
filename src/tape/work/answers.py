"""What a handler may raise or return instead of succeeding."""

from datetime import timedelta
from typing import Final

from tape.core.task import Died, Done, Failed, Outcome, Released

DONE: Final = Done()


class Retry(Exception):
    """The attempt failed: try again after this time, or after the backoff of the reaction."""

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason or "the handler asked for another attempt"
        self.after = timedelta(seconds=after) if isinstance(after, int | float) else after


class Dead(Exception):
    """The attempt failed for good: the task becomes a dead letter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Release(Exception):
    """Gives the task back: the attempt does not count, and any worker may claim it at once."""


def outcome_of(answer: object) -> Outcome:
    """The outcome of an attempt whose handler returned or raised this."""
    if not isinstance(answer, Exception):
        return DONE
    match answer:
        case Release():
            return Released()
        case Retry():
            return Failed(answer.reason, answer.after)
        case Dead():
            return Died(answer.reason)
        case _:
            return Failed(f"{type(answer).__name__}: {answer}")
