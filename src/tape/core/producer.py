"""Producers: named functions that continue a run's history in a fork."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.event import Entry
from tape.core.ids import ID_IN_WORDS, is_id
from tape.core.ports import EventSink

TURNS: Final = 10
MAX_TURNS: Final = 200


class Loop(Protocol):
    """Continues after a prefix, with a mutation, for a number of turns, and emits its events to a sink.

    It runs in its own thread. The sink's `run_id` is the fork; `emit` raises once that run has ended.
    """

    def __call__(self, prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: EventSink, /) -> object: ...


Check: TypeAlias = Callable[[JsonValue], object]
"""Raises if the loop cannot continue with this mutation; it is called before the fork is created."""


@dataclass(frozen=True, slots=True)
class Producer:
    """A loop with a name; calling it calls the loop."""

    name: str
    loop: Loop
    check: Check | None = None

    def __post_init__(self) -> None:
        check_name(self.name)

    def check_mutation(self, mutation: JsonValue) -> None:
        """Raises a UsageError if the loop's own check raises anything."""
        if self.check is None or mutation is None:
            return
        try:
            self.check(mutation)
        except Exception as error:  # the check and the mutation are the user's
            why = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            raise UsageError(f"producer {self.name!r} refuses the mutation: {why}") from error

    def __call__(self, prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: EventSink) -> object:
        return self.loop(prefix, mutation, n_turns, sink)


def producer(name: str, *, check: Check | None = None) -> Callable[[Loop], Producer]:
    """Gives a loop the name by which a fork requests it; `tape serve --producers` loads its module.

    A mutation that `check` raises on is refused before the fork is created.
    """
    check_name(name)
    return lambda loop: Producer(name, loop, check)


def check_name(name: str) -> None:
    if not isinstance(name, str) or not is_id(name):
        raise UsageError(f"a producer has a name, {ID_IN_WORDS}, not {quoted(name)}")


def check_turns(n_turns: int) -> None:
    if type(n_turns) is not int or not 0 <= n_turns <= MAX_TURNS:
        raise UsageError(f"n_turns is 0 to {MAX_TURNS}, not {quoted(n_turns)}")
