"""The story of a world, an event at a time; it can be taken up after any of them.

A turn is the same row of events always: its start with the whole world, five events of each agent, the upkeep, and a
metric of each agent. So where a story stands is a world and a number of events, and the next event follows from them.
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
NOBODY: Final = Action(tool="rest", reasoning="Nobody is left to lead.")
RATES: Final = {"hearth-small": 1, "ember-medium": 4, "anvil-large": 15}  # millionths of a dollar for a token

Payload: TypeAlias = dict[str, JsonValue]


class Said(NamedTuple):
    """An event of the story; an empty agent is the world itself."""

    type: str
    agent: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class Place:
    """Where a story stands: the world, how much of the turn has been told, and what was decided and not yet done."""

    world: World
    told: int = 0
    decided: Action | None = None

    @property
    def next_type(self) -> str:
        agents = len(self.world.settlements)
        if self.told == 0:
            return TURN_START
        if self.told <= agents * len(AGENTS):
            return AGENTS[(self.told - 1) % len(AGENTS)]
        return "world_mutation" if self.told == agents * len(AGENTS) + 1 else "metric"

    @property
    def actor(self) -> int:
        """Which settlement the next event is about."""
        agents = len(self.world.settlements)
        is_acting = self.told <= agents * len(AGENTS)
        return (self.told - 1) // len(AGENTS) if is_acting else (self.told - 2) % agents

    def after(self, world: World, decided: Action | None = None) -> "Place":
        """One event on; after the last of a turn the next turn begins."""
        told = self.told + 1
        if told == 2 + len(world.settlements) * (len(AGENTS) + 1):
            return Place(replace(world, turn=world.turn + 1))
        return Place(world, told, decided)


def step(place: Place, decide: Decide = by_rule) -> tuple[Place, Said]:
    """The next event, and where the story stands after it."""
    match place.next_type:
        case "turn_start":
            return place.after(place.world), _said(place, season=place.world.season, world=snapshot(place.world))
        case "world_mutation":
            return _keep_up(place)
        case "llm_response":
            return _respond(place, decide)
        case "action_result":
            return _act(place)
        case _:
            return place.after(place.world, place.decided), _tell(place)


def world_at(prefix: Sequence[Entry | Event]) -> Place:
    """Where a story stands after what has been said of it; what others said in between is passed over."""
    starts = (n for n in range(len(prefix) - 1, -1, -1) if _is_ours(prefix[n], TURN_START))
    place = Place(found())
    for said in prefix[next(starts, 0) :]:
        place = _follow(place, said)
    return place


def _follow(place: Place, said: Entry | Event) -> Place:
    """A decision that was made is not made again: a model would make another one."""
    if _is_ours(said, TURN_START):
        return Place(restored(_field(said, "world")), 1)
    if _is_ours(said, MUTATION):
        return replace(place, world=mutate(place.world, said.payload))
    return step(place, lambda _: _decided(said))[0] if _is_ours(said, place.next_type) else place


def _is_ours(said: Entry | Event, type: str) -> bool:
    return said.kind == EVENT and said.type == type


def _field(said: Entry | Event, name: str) -> Any:
    return said.payload.get(name) if isinstance(said.payload, dict) else None


def _decided(said: Entry | Event) -> Action:
    call = _field(said, "action")
    if not isinstance(call, dict):
        raise Corrupt("an llm_response holds no action")
    return Action(tool=call["tool"], **call["arguments"], reasoning=_field(said, "reasoning"))


def _said(place: Place, agent: str = "", **facts: JsonValue) -> Said:
    named: Payload = {"agent": agent} if agent else {}
    return Said(place.next_type, agent, {"turn_num": place.world.turn, **named, **facts})


def _tell(place: Place) -> Said:
    """What an agent sees, is asked, does or is worth; none of it changes the world."""
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
            action = place.decided or NOBODY
            facts = {"tool": action.tool, "arguments": action.arguments}
        case _:
            facts = {"name": "prosperity", "value": mine.prosperity, "population": mine.population, "age": mine.age}
    return _said(place, seen.agent, **facts)


def _respond(place: Place, decide: Decide) -> tuple[Place, Said]:
    seen = observe(place.world, place.actor)
    action = NOBODY if seen.settlement.is_fallen else decide(seen)
    tokens = _tokens(action.reasoning) + _tokens(str(action.arguments))
    spent = _tokens(prompt(seen)) + 4 * tokens
    said = _said(
        place,
        seen.agent,
        model=seen.model,
        reasoning=action.reasoning,
        action={"tool": action.tool, "arguments": action.arguments},
        tokens=tokens,
        cost_usd=RATES[seen.model] * spent / 1_000_000,
    )
    return place.after(place.world, action), said


def _act(place: Place) -> tuple[Place, Said]:
    action = place.decided or NOBODY
    outcome = act(place.world, place.actor, action)
    name = place.world.settlements[place.actor].name
    now = status(outcome.world.settlements[place.actor])
    said = _said(place, name, tool=action.tool, ok=outcome.is_done, summary=outcome.summary, settlement=now)
    return place.after(outcome.world), said


def _keep_up(place: Place) -> tuple[Place, Said]:
    kept = upkeep(place.world)
    tales: list[JsonValue] = list(kept.tales)
    said = _said(place, season=place.world.season, grown=kept.grown, eaten=kept.eaten, tales=tales)
    return place.after(kept.world), said


def _tokens(text: str) -> int:
    return len(text) // 4 + 1
