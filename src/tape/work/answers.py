"""What a handler can answer beside success, raised or returned."""

from datetime import timedelta
from typing import Final

from tape.core.task import Died, Done, Failed, Outcome, Released

DONE: Final = Done()


class Retry(Exception):
    """Try again, after a time of the handler's own or else after the backoff; it still counts as an attempt."""

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason or "the handler asked for another attempt"
        self.after = timedelta(seconds=after) if isinstance(after, int | float) else after


class Dead(Exception):
    """Never try again: what is wrong will stay wrong."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Release(Exception):
    """Give the task back unattempted: the attempt does not count, and another worker may claim it at once."""


def outcome_of(answer: object) -> Outcome:
    """What an answer, or the error in its place, means for the task."""
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
