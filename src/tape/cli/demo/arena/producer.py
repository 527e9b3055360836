"""The arena as a producer: a loop that emits a story to a sink."""

from collections.abc import Sequence
from typing import Final

from tape.cli.demo.arena.agents import Decide, by_rule
from tape.cli.demo.arena.turns import ArenaEvent, StoryPosition, step, world_at
from tape.cli.demo.arena.world import mutate
from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.event import Entry, Event
from tape.core.ports import EventSink

MAX_TURNS: Final = 200
RUN: Final = "arena"


def arena(
    prefix: Sequence[Entry | Event], mutation: JsonValue, n_turns: int, sink: EventSink, *, decide: Decide = by_rule
) -> None:
    """Continues after a prefix, with a mutation, for a number of turns.

    If the prefix ends within a turn, that turn is the first one. The events belong to the sink's run if it has a
    `run_id`, else to the run of the prefix.
    """
    place = world_at(prefix)
    if mutation is not None:
        place = StoryPosition(mutate(place.world, mutation), place.emitted, place.decided)
    run_id: str = getattr(sink, "run_id", prefix[-1].run_id if prefix else RUN)
    play(run_id, place, n_turns, sink, decide)


def play(run_id: str, place: StoryPosition, n_turns: int, sink: EventSink, decide: Decide = by_rule) -> StoryPosition:
    """Emits a number of turns and returns the place after them."""
    if type(n_turns) is not int or not 0 <= n_turns <= MAX_TURNS:
        raise UsageError(f"n_turns is 0 to {MAX_TURNS}, not {quoted(n_turns)}")
    end = place.world.turn + n_turns
    while place.world.turn < end:
        place, event = step(place, decide)
        sink.emit(_event(run_id, event))
    return place


def _event(run_id: str, event: ArenaEvent) -> Event:
    return Event(
        run_id=run_id, type=event.type, payload=event.payload, subject=f"/arena/{event.agent or 'world'}/{event.type}"
    )
