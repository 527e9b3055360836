"""The story of a world, one event at a time; it can continue after any of them.

Every turn has the same events: its start with the complete world, five events of each agent, the upkeep, and a metric
of each agent. So a world and a number of events determine the next event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from tape.cli.demo.arena.actions import Action, act
from tape.cli.demo.arena.agents import Decide, by_rule, observe, prompt
from tape.cli.demo.arena.snapshot import portrait, restored, snapshot, status
from tape.cli.demo.arena.upkeep import upkeep
from tape.cli.demo.arena.world import World, found, mutate
from tape.core.codec import JsonValue
from tape.core.errors import Corrupt
from tape.core.event import EVENT, Entry, Event

TURN_START: Final = "turn_start"
AGENTS: Final = ("observation", "llm_prompt", "llm_response", "action", "action_result")
TYPES: Final = (TURN_START, *AGENTS, "world_mutation", "metric")
MUTATION: Final = "mutation"
REST: Final = Action(tool="rest", reasoning="Nobody is left to lead.")
RATES: Final = {"hearth-small": 1, "ember-medium": 4, "anvil-large": 15}  # millionths of a dollar per token

Payload: TypeAlias = dict[str, JsonValue]


class ArenaEvent(NamedTuple):
    """An event of the story; without an agent it is about the world."""

    type: str
    agent: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class StoryPosition:
    """A place in a story: the world, how many events of the turn were emitted, and a decision not carried out yet."""

    world: World
    emitted: int = 0
    decided: Action | None = None

    @property
    def next_type(self) -> str:
        agents = len(self.world.settlements)
        if self.emitted == 0:
            return TURN_START
        if self.emitted <= agents * len(AGENTS):
            return AGENTS[(self.emitted - 1) % len(AGENTS)]
        return "world_mutation" if self.emitted == agents * len(AGENTS) + 1 else "metric"

    @property
    def actor(self) -> int:
        """The settlement of the next event."""
        agents = len(self.world.settlements)
        is_acting = self.emitted <= agents * len(AGENTS)
        return (self.emitted - 1) // len(AGENTS) if is_acting else (self.emitted - 2) % agents

    def after(self, world: World, decided: Action | None = None) -> "StoryPosition":
        """The place after one more event; after the last of a turn the next turn begins."""
        emitted = self.emitted + 1
        if emitted == 2 + len(world.settlements) * (len(AGENTS) + 1):
            return StoryPosition(replace(world, turn=world.turn + 1))
        return StoryPosition(world, emitted, decided)


def step(place: StoryPosition, decide: Decide = by_rule) -> tuple[StoryPosition, ArenaEvent]:
    """The next event, and the place after it."""
    match place.next_type:
        case "turn_start":
            return place.after(place.world), _event_at(place, season=place.world.season, world=snapshot(place.world))
        case "world_mutation":
            return _keep_up(place)
        case "llm_response":
            return _respond(place, decide)
        case "action_result":
            return _act(place)
        case _:
            return place.after(place.world, place.decided), _metric(place)


def world_at(prefix: Sequence[Entry | Event]) -> StoryPosition:
    """The place in a story after these events; events of others are ignored."""
    starts = (n for n in range(len(prefix) - 1, -1, -1) if _is_ours(prefix[n], TURN_START))
    place = StoryPosition(found())
    for event in prefix[next(starts, 0) :]:
        place = _follow(place, event)
    return place


def _follow(place: StoryPosition, event: Entry | Event) -> StoryPosition:
    """A recorded decision is not made again, because a model could decide otherwise."""
    if _is_ours(event, TURN_START):
        return StoryPosition(restored(_field(event, "world")), 1)
    if _is_ours(event, MUTATION):
        return replace(place, world=mutate(place.world, event.payload))
    return step(place, lambda _: _decided(event))[0] if _is_ours(event, place.next_type) else place


def _is_ours(event: Entry | Event, type: str) -> bool:
    return event.kind == EVENT and event.type == type


def _field(event: Entry | Event, name: str) -> Any:
    return event.payload.get(name) if isinstance(event.payload, dict) else None


def _decided(event: Entry | Event) -> Action:
    call = _field(event, "action")
    if not isinstance(call, dict):
        raise Corrupt("an llm_response holds no action")
    return Action(tool=call["tool"], **call["arguments"], reasoning=_field(event, "reasoning"))


def _event_at(place: StoryPosition, agent: str = "", **facts: JsonValue) -> ArenaEvent:
    named: Payload = {"agent": agent} if agent else {}
    return ArenaEvent(place.next_type, agent, {"turn_num": place.world.turn, **named, **facts})


def _metric(place: StoryPosition) -> ArenaEvent:
    """An event about an agent that does not change the world."""
    seen = observe(place.world, place.actor)
    mine = seen.settlement
    match place.next_type:
        case "observation":
            others: list[JsonValue] = [status(other) for other in seen.neighbours]
            facts: Payload = {"season": seen.season, **status(mine), "land": portrait(seen.land), "neighbours": others}
        case "llm_prompt":
            text = prompt(seen)
            facts = {"model": seen.model, "temper": seen.temper, "prompt": text, "tokens": _tokens(text)}
        case "action":
            action = place.decided or REST
            facts = {"tool": action.tool, "arguments": action.arguments}
        case _:
            facts = {"name": "prosperity", "value": mine.prosperity, "population": mine.population, "age": mine.age}
    return _event_at(place, seen.agent, **facts)


def _respond(place: StoryPosition, decide: Decide) -> tuple[StoryPosition, ArenaEvent]:
    seen = observe(place.world, place.actor)
    action = REST if seen.settlement.is_fallen else decide(seen)
    tokens = _tokens(action.reasoning) + _tokens(str(action.arguments))
    spent = _tokens(prompt(seen)) + 4 * tokens
    event = _event_at(
        place,
        seen.agent,
        model=seen.model,
        reasoning=action.reasoning,
        action={"tool": action.tool, "arguments": action.arguments},
        tokens=tokens,
        cost_usd=RATES[seen.model] * spent / 1_000_000,
    )
    return place.after(place.world, action), event


def _act(place: StoryPosition) -> tuple[StoryPosition, ArenaEvent]:
    action = place.decided or REST
    outcome = act(place.world, place.actor, action)
    name = place.world.settlements[place.actor].name
    now = status(outcome.world.settlements[place.actor])
    event = _event_at(place, name, tool=action.tool, ok=outcome.is_done, summary=outcome.summary, settlement=now)
    return place.after(outcome.world), event


def _keep_up(place: StoryPosition) -> tuple[StoryPosition, ArenaEvent]:
    kept = upkeep(place.world)
    tales: list[JsonValue] = list(kept.tales)
    event = _event_at(place, season=place.world.season, grown=kept.grown, eaten=kept.eaten, tales=tales)
    return place.after(kept.world), event


def _tokens(text: str) -> int:
    return len(text) // 4 + 1
