"""The actions of an agent: pure functions from a world to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, assert_never, get_args

from tape.cli.demo.arena.world import AGES, RESOURCES, Resource, Stock, Village, World, only
from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted

Tool: TypeAlias = Literal["gather", "build_house", "recruit", "advance_age", "trade", "rest"]

TOOLS: Final[tuple[Tool, ...]] = get_args(Tool)
HOUSE: Final = Stock(wood=20, stone=5)
ROOM: Final = 5
MEAL: Final = 10
RECRUITS: Final = 2
LOAD: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action and its reason. Gathering names a resource; trading a partner, what is given and what is wanted."""

    tool: Tool
    resource: Resource | None = None
    partner: str | None = None
    wanted: Resource | None = None
    reasoning: str = ""

    def __post_init__(self) -> None:
        if self.tool not in TOOLS:
            raise UsageError(f"a tool is one of {', '.join(TOOLS)}, not {quoted(self.tool)}")
        for resource in (self.resource, self.wanted):
            if resource is not None and resource not in RESOURCES:
                raise UsageError(f"a resource is one of {', '.join(RESOURCES)}, not {quoted(resource)}")

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of the tool."""
        named = {"resource": self.resource, "partner": self.partner, "wanted": self.wanted}
        return {name: value for name, value in named.items() if value is not None}


class ActionResult(NamedTuple):
    """The world after an action, whether it succeeded, and a summary."""

    world: World
    is_done: bool
    summary: str


def act(world: World, place: int, action: Action) -> ActionResult:
    """The outcome of a settlement's action; an impossible one changes nothing."""
    settlement = world.settlements[place]
    if settlement.is_fallen:
        return ActionResult(world, False, f"{settlement.name} has fallen; nobody is left to act")
    does: Callable[[World, int, Action], ActionResult]
    match action.tool:
        case "gather":
            does = _gather
        case "build_house":
            does = _build
        case "recruit":
            does = _recruit
        case "advance_age":
            does = _advance
        case "trade":
            does = _trade
        case "rest":
            return ActionResult(world, True, f"{settlement.name} rests")
        case _:
            assert_never(action.tool)
    return does(world, place, action)


def age_cost(settlement: Village) -> Stock | None:
    """The cost of the next age; None after the last."""
    step = AGES.index(settlement.age) + 1
    return None if step == len(AGES) else Stock(food=20 * step, gold=25 * step, stone=10 * step)


def _gather(world: World, place: int, action: Action) -> ActionResult:
    settlement = world.settlements[place]
    resource = action.resource or "food"
    skill = 25 + 8 * AGES.index(settlement.age)
    luck = world.chance(settlement.name, "gather").randint(80, 120)
    found = min(settlement.population * skill * luck // 1000, world.land.of(resource))
    if found == 0:
        return ActionResult(world, False, f"{settlement.name} finds no {resource}: the land has none")
    haul = only(resource, found)
    richer = replace(settlement, stock=settlement.stock.plus(haul))
    return ActionResult(
        world.changed(place, richer, land=world.land.minus(haul)), True, f"{settlement.name} gathers {found} {resource}"
    )


def _build(world: World, place: int, _: Action) -> ActionResult:
    settlement = world.settlements[place]
    housed = replace(settlement, pop_cap=settlement.pop_cap + ROOM)
    return _pay(world, place, housed, HOUSE, f"builds a house for {ROOM} more")


def _recruit(world: World, place: int, _: Action) -> ActionResult:
    settlement = world.settlements[place]
    arrivals = min(RECRUITS, settlement.pop_cap - settlement.population)
    if arrivals <= 0:
        return ActionResult(world, False, f"{settlement.name} has no room for anybody")
    grown = replace(settlement, population=settlement.population + arrivals)
    return _pay(world, place, grown, Stock(food=MEAL * arrivals), f"welcomes {arrivals} settlers")


def _advance(world: World, place: int, _: Action) -> ActionResult:
    settlement = world.settlements[place]
    cost = age_cost(settlement)
    if cost is None:
        return ActionResult(world, False, f"{settlement.name} has reached the last age")
    age = AGES[AGES.index(settlement.age) + 1]
    return _pay(world, place, replace(settlement, age=age), cost, f"enters the {age} age")


def _pay(world: World, place: int, better: Village, cost: Stock, deed: str) -> ActionResult:
    stock = better.stock
    if not stock.covers(cost):
        return ActionResult(world, False, f"{better.name} cannot afford it: it takes {_listed(cost)}")
    paid = world.changed(place, replace(better, stock=stock.minus(cost)), spent=world.spent.plus(cost))
    return ActionResult(paid, True, f"{better.name} {deed}")


def _trade(world: World, place: int, action: Action) -> ActionResult:
    """One load for another; a partner gives only what its people do not need."""
    settlement = world.settlements[place]
    names = [other.name for other in world.settlements]
    given, wanted = action.resource or "gold", action.wanted or "food"
    if action.partner not in names or action.partner == settlement.name:
        return ActionResult(world, False, f"{settlement.name} knows no {action.partner or 'partner'} to trade with")
    there = names.index(action.partner)
    partner = world.settlements[there]
    need = LOAD + (3 * partner.population if wanted == "food" else 0)
    if settlement.stock.of(given) < LOAD or partner.stock.of(wanted) < need:
        return ActionResult(world, False, f"{partner.name} will not give {wanted} for {given} of {settlement.name}")
    price, goods = only(given, LOAD), only(wanted, LOAD)
    mine = replace(settlement, stock=settlement.stock.minus(price).plus(goods))
    theirs = replace(partner, stock=partner.stock.minus(goods).plus(price))
    summary = f"{settlement.name} trades {LOAD} {given} for {LOAD} {wanted} of {partner.name}"
    return ActionResult(world.changed(place, mine).changed(there, theirs), True, summary)


def _listed(cost: Stock) -> str:
    return ", ".join(f"{amount} {resource}" for resource, amount in zip(RESOURCES, cost, strict=True) if amount)
