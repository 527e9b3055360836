"""The agents: what each observes, and the rules of one without a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tape.cli.demo.arena.actions import HOUSE, LOAD, MEAL, RECRUITS, Action, age_cost
from tape.cli.demo.arena.world import NOTHING, RESOURCES, Resource, Stock, Village, World

MODELS: Final = ("hearth-small", "ember-medium", "anvil-large")
TEMPERS: Final = ("careful", "bold", "diligent")
FAVOURITES: Final[tuple[Resource, ...]] = ("food", "gold", "wood")
LEAN: Final = {"careful": 5, "bold": 3, "diligent": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """What an agent knows when it decides: its settlement, the land, its neighbours, and a random number."""

    turn_num: int
    season: str
    agent: str
    model: str
    temper: str
    settlement: Village
    land: Stock
    neighbours: tuple[Village, ...]
    dice: int


Decide: TypeAlias = Callable[[AgentView], Action]
"""Chooses an action; a model can be plugged in here."""


def observe(world: World, place: int) -> AgentView:
    """The world as one settlement observes it."""
    settlement = world.settlements[place]
    return AgentView(
        turn_num=world.turn,
        season=world.season,
        agent=settlement.name,
        model=MODELS[place % len(MODELS)],
        temper=TEMPERS[place % len(TEMPERS)],
        settlement=settlement,
        land=world.land,
        neighbours=tuple(other for other in world.settlements if other.name != settlement.name),
        dice=world.chance(settlement.name, "dice").randint(1, 6),
    )


def prompt(seen: AgentView) -> str:
    """The observation as the prompt of a model."""
    mine = seen.settlement
    stores = ", ".join(f"{amount} {name}" for name, amount in zip(RESOURCES, mine.stock, strict=True))
    others = "; ".join(f"{other.name} has {other.population} people" for other in seen.neighbours)
    return (
        f"You are {seen.agent}, a {seen.temper} leader. It is {seen.season}, turn {seen.turn_num}, the {mine.age} age. "
        f"You have {mine.population} people, room for {mine.pop_cap}, and {stores}. {others}. "
        "Use one tool: gather, build_house, recruit, advance_age, trade or rest."
    )


def by_rule(seen: AgentView) -> Action:
    """Decides by temper: first against hunger, then for growth, then for what the agent prefers."""
    return _against_hunger(seen) or _for_growth(seen) or _for_love(seen)


def _against_hunger(seen: AgentView) -> Action | None:
    mine = seen.settlement
    if mine.stock.food >= LEAN[seen.temper] * mine.population // 2:
        return None
    rich = [other for other in seen.neighbours if other.stock.food >= LOAD + 3 * other.population]
    if rich and mine.stock.gold >= LOAD and seen.land.food < 2 * mine.population:
        why = f"The land is bare and {rich[0].name} has food to spare."
        return Action(tool="trade", resource="gold", partner=rich[0].name, wanted="food", reasoning=why)
    return Action(tool="gather", resource="food", reasoning=f"{mine.stock.food} food will not feed {mine.population}.")


def _for_growth(seen: AgentView) -> Action | None:
    mine = seen.settlement
    cost = age_cost(mine)
    if cost is not None and mine.stock.covers(cost.plus(Stock(food=mine.population))):
        return Action(tool="advance_age", reasoning=f"The {mine.age} age has served its time.")
    if mine.population < mine.pop_cap:
        is_fed = mine.stock.food >= MEAL * RECRUITS + 2 * mine.population
        return Action(tool="recruit", reasoning="There is bread and room for more.") if is_fed else None
    if mine.stock.covers(HOUSE):
        return Action(tool="build_house", reasoning="Every bed is taken.")
    lacking: Resource = "wood" if mine.stock.wood < HOUSE.wood else "stone"
    return Action(tool="gather", resource=lacking, reasoning=f"A house needs more {lacking}.")


def _for_love(seen: AgentView) -> Action:
    """The next age with some luck, else the agent's preferred resource."""
    favourite = FAVOURITES[TEMPERS.index(seen.temper)]
    lacking = [resource for resource in _lacking(seen.settlement) if seen.land.of(resource)]
    if lacking and seen.dice >= 3:
        return Action(tool="gather", resource=lacking[0], reasoning=f"The next age will take more {lacking[0]}.")
    if not seen.land.of(favourite):
        return Action(tool="rest", reasoning=f"There is no more {favourite} in the land.")
    return Action(tool="gather", resource=favourite, reasoning=f"A {seen.temper} leader never has enough {favourite}.")


def _lacking(settlement: Village) -> list[Resource]:
    cost = age_cost(settlement) or NOTHING
    return [resource for resource in RESOURCES if settlement.stock.of(resource) < cost.of(resource)]
