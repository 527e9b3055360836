"""A small world: settlements on shared land. It uses integers only, so that it is the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.ids import ID_IN_WORDS, is_id

Resource: TypeAlias = Literal["food", "wood", "gold", "stone"]
Age: TypeAlias = Literal["dark", "feudal", "castle", "imperial"]

RESOURCES: Final[tuple[Resource, ...]] = get_args(Resource)
AGES: Final[tuple[Age, ...]] = get_args(Age)
SEASONS: Final = ("spring", "summer", "autumn", "winter")
MAX_NUMBER: Final = 1_000_000
FOUNDERS: Final = ("ada", "bo", "cy")
NUMBERS: Final = (*RESOURCES, "population", "pop_cap")


class Stock(NamedTuple):
    """An amount of each resource."""

    food: int = 0
    wood: int = 0
    gold: int = 0
    stone: int = 0

    def of(self, resource: Resource) -> int:
        return self[RESOURCES.index(resource)]

    def plus(self, other: Stock) -> Stock:
        return Stock(*(mine + more for mine, more in zip(self, other, strict=True)))

    def minus(self, other: Stock) -> Stock:
        return Stock(*(mine - less for mine, less in zip(self, other, strict=True)))

    def covers(self, cost: Stock) -> bool:
        return all(mine >= price for mine, price in zip(self, cost, strict=True))


NOTHING: Final = Stock()
FIRST_STORES: Final = Stock(food=40, wood=20, gold=10, stone=10)
VIRGIN_LAND: Final = Stock(food=300, wood=900, gold=800, stone=400)


def only(resource: Resource, amount: int) -> Stock:
    """An amount of one resource."""
    return NOTHING._replace(**{resource: amount})


@dataclass(frozen=True, slots=True, kw_only=True)
class Village:
    name: str
    stock: Stock = FIRST_STORES
    population: int = 6
    pop_cap: int = 10
    age: Age = "dark"

    @property
    def is_fallen(self) -> bool:
        return self.population == 0

    @property
    def prosperity(self) -> int:
        """A score: people count most, then the age, then the stock."""
        return 0 if self.is_fallen else 10 * self.population + 60 * AGES.index(self.age) + sum(self.stock) // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The whole world. Resources are conserved: land + stocks + spent = initial amount + grown."""

    seed: int
    settlements: tuple[Village, ...]
    turn: int = 1
    land: Stock = VIRGIN_LAND
    spent: Stock = NOTHING
    grown: int = 0

    @property
    def season(self) -> str:
        return SEASONS[(self.turn - 1) % len(SEASONS)]

    def chance(self, *about: object) -> Random:
        """A pseudo-random number: the same question to the same world at the same time gives the same answer."""
        return Random("/".join(map(str, (self.seed, self.turn, *about))))

    def changed(self, place: int, settlement: Village, **changes: Any) -> World:
        settlements = (*self.settlements[:place], settlement, *self.settlements[place + 1 :])
        return replace(self, settlements=settlements, **changes)


def found(seed: int = 7, names: tuple[str, ...] = FOUNDERS) -> World:
    """A world in its first turn."""
    if not names or len(set(names)) < len(names) or not all(map(is_id, names)):
        raise UsageError(f"settlements have names of their own, each {ID_IN_WORDS}")
    return World(seed=seed, settlements=tuple(Village(name=name) for name in names))


def mutate(world: World, mutation: JsonValue | bytes) -> World:
    """The world after a mutation: every settlement gets the named amounts and the named age."""
    decree = decreed(mutation)
    return replace(world, settlements=tuple(_decreed(settlement, decree) for settlement in world.settlements))


def decreed(mutation: JsonValue | bytes) -> Mapping[str, JsonValue]:
    """The fields of a mutation, if this world knows them."""
    if not isinstance(mutation, dict):
        raise UsageError(f"a mutation is an object, not {quoted(mutation)}")
    for name, value in mutation.items():
        _check(name, value)
    return mutation


def _check(name: str, value: JsonValue) -> None:
    if name == "age":
        if value not in AGES:
            raise UsageError(f"age is one of {', '.join(AGES)}, not {quoted(value)}")
    elif name not in NUMBERS:
        raise UsageError(f"a mutation may name {', '.join(NUMBERS)} and age, not {quoted(name)}")
    elif type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise UsageError(f"{name} is a whole number from 0 to {MAX_NUMBER:,}, not {quoted(value)}")


def _decreed(settlement: Village, mutation: Mapping[str, JsonValue]) -> Village:
    """The mutation was checked, so its values have the right types."""
    named: dict[str, Any] = dict(mutation)
    stock = settlement.stock._replace(**{name: named.pop(name) for name in RESOURCES if name in named})
    return replace(settlement, stock=stock, **named)
