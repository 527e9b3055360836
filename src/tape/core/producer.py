"""Producers: plain loops that go on where a history ends, each under the name by which a fork asks for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.event import Entry
from tape.core.ids import ID_IN_WORDS, is_id
from tape.core.ports import EventSink

TURNS: Final = 10
MOST_TURNS: Final = 200


class Loop(Protocol):
    """Goes on after a prefix, in a world that a mutation has changed, for so many turns, and says it to a sink.

    It runs in a thread of its own. The sink's `run_id` is the run it speaks in; `emit` raises once that has ended.
    """

    def __call__(self, prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: EventSink, /) -> object: ...


Check: TypeAlias = Callable[[JsonValue], object]
"""Raises if a mutation is nothing that a loop could go on with; it is asked before there is a child."""


@dataclass(frozen=True, slots=True)
class Producer:
    """A loop and its name; called, it is the loop."""

    name: str
    loop: Loop
    check: Check | None = None

    def __post_init__(self) -> None:
        check_name(self.name)

    def check_mutation(self, mutation: JsonValue) -> None:
        """Refuses what the loop's own check refuses, whatever that raises."""
        if self.check is None or mutation is None:
            return
        try:
            self.check(mutation)
        except Exception as error:  # the check is the user's, and so is the mutation that it failed on
            why = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            raise UsageError(f"producer {self.name!r} refuses the mutation: {why}") from error

    def __call__(self, prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: EventSink) -> object:
        return self.loop(prefix, mutation, n_turns, sink)


def producer(name: str, *, check: Check | None = None) -> Callable[[Loop], Producer]:
    """Gives a loop a name; who loads the module it is in (`tape serve --producers`) can be asked for it.

    A mutation that the check raises on is refused before there is a child.
    """
    check_name(name)
    return lambda loop: Producer(name, loop, check)


def check_name(name: str) -> None:
    if not isinstance(name, str) or not is_id(name):
        raise UsageError(f"a producer has a name, {ID_IN_WORDS}, not {quoted(name)}")
