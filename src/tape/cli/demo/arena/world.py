"""A small world: settlements on shared land. Whole numbers only, so that it is the same everywhere."""

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
MOST: Final = 1_000_000
FOUNDERS: Final = ("ada", "bo", "cy")
NUMBERS: Final = (*RESOURCES, "population", "pop_cap")


class Stock(NamedTuple):
    """So much of each resource."""

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
    """So much of one resource."""
    return NOTHING._replace(**{resource: amount})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What one agent governs."""

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
        """One number to watch: people count most, then the age, then what is in store."""
        return 0 if self.is_fallen else 10 * self.population + 60 * AGES.index(self.age) + sum(self.stock) // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything there is. Nothing appears but what grows: land + stores + spent = what there was + grown."""

    seed: int
    settlements: tuple[Settlement, ...]
    turn: int = 1
    land: Stock = VIRGIN_LAND
    spent: Stock = NOTHING
    grown: int = 0

    @property
    def season(self) -> str:
        return SEASONS[(self.turn - 1) % len(SEASONS)]

    def chance(self, *about: object) -> Random:
        """Luck that is the same whenever the same is asked of the same world at the same time."""
        return Random("/".join(map(str, (self.seed, self.turn, *about))))

    def changed(self, place: int, settlement: Settlement, **changes: Any) -> World:
        """The same world with one settlement changed."""
        settlements = (*self.settlements[:place], settlement, *self.settlements[place + 1 :])
        return replace(self, settlements=settlements, **changes)


def found(seed: int = 7, names: tuple[str, ...] = FOUNDERS) -> World:
    """A world in its first turn."""
    if not names or len(set(names)) < len(names) or not all(map(is_id, names)):
        raise UsageError(f"settlements have names of their own, each {ID_IN_WORDS}")
    return World(seed=seed, settlements=tuple(Settlement(name=name) for name in names))


def mutate(world: World, mutation: JsonValue | bytes) -> World:
    """The world after a decree: every settlement gets the same number of what is named, and the same age."""
    decree = decreed(mutation)
    return replace(world, settlements=tuple(_decreed(settlement, decree) for settlement in world.settlements))


def decreed(mutation: JsonValue | bytes) -> Mapping[str, JsonValue]:
    """What a mutation names, if it is one that this world knows."""
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
    elif type(value) is not int or not 0 <= value <= MOST:
        raise UsageError(f"{name} is a whole number from 0 to {MOST:,}, not {quoted(value)}")


def _decreed(settlement: Settlement, mutation: Mapping[str, JsonValue]) -> Settlement:
    """A mutation has been checked, so its values have the types of the fields they name."""
    named: dict[str, Any] = dict(mutation)
    stock = settlement.stock._replace(**{name: named.pop(name) for name in RESOURCES if name in named})
    return replace(settlement, stock=stock, **named)
