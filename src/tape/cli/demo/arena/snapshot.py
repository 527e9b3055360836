"""Converts a world to JSON and back."""

from typing import Any

from tape.cli.demo.arena.world import Stock, Village, World
from tape.core.codec import JsonValue
from tape.core.errors import Corrupt


def snapshot(world: World) -> dict[str, JsonValue]:
    """A complete world as JSON."""
    return {
        "seed": world.seed,
        "turn": world.turn,
        "land": portrait(world.land),
        "spent": portrait(world.spent),
        "grown": world.grown,
        "settlements": [status(settlement) for settlement in world.settlements],
    }


def status(settlement: Village) -> dict[str, JsonValue]:
    """A settlement's fields, under the names that a mutation uses."""
    return {
        "name": settlement.name,
        **portrait(settlement.stock),
        "population": settlement.population,
        "pop_cap": settlement.pop_cap,
        "age": settlement.age,
    }


def portrait(stock: Stock) -> dict[str, JsonValue]:
    return dict(stock._asdict())


def restored(payload: Any) -> World:
    try:
        return World(
            seed=payload["seed"],
            turn=payload["turn"],
            land=Stock(**payload["land"]),
            spent=Stock(**payload["spent"]),
            grown=payload["grown"],
            settlements=tuple(map(_settlement, payload["settlements"])),
        )
    except (KeyError, TypeError) as error:
        raise Corrupt("a turn_start holds no world") from error


def _settlement(given: dict[str, Any]) -> Village:
    stock = Stock(**{name: given[name] for name in Stock._fields})
    return Village(
        name=given["name"],
        stock=stock,
        population=given["population"],
        pop_cap=given["pop_cap"],
        age=given["age"],
    )
