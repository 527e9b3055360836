"""The end of a turn: people eat, starve, leave or are born, and the land grows."""

from dataclasses import replace
from typing import Final, NamedTuple

from tape.cli.demo.arena.world import Stock, Village, World

HARVEST: Final = {"spring": (20, 40), "summer": (40, 70), "autumn": (50, 80), "winter": (0, 15)}
PLENTY: Final = 3


class Upkeep(NamedTuple):
    """The world after the upkeep, and what happened."""

    world: World
    grown: int
    eaten: int
    tales: tuple[str, ...]


def upkeep(world: World) -> Upkeep:
    """What happens to all settlements at the end of a turn."""
    fates = [_fate(settlement) for settlement in world.settlements]
    eaten = sum(before.stock.food - after.stock.food for before, after in zip(world.settlements, fates, strict=True))
    grown = world.chance("harvest").randint(*HARVEST[world.season])
    after = replace(
        world,
        settlements=tuple(fates),
        land=world.land.plus(Stock(food=grown)),
        spent=world.spent.plus(Stock(food=eaten)),
        grown=world.grown + grown,
    )
    tales = tuple(_tale(before, after) for before, after in zip(world.settlements, fates, strict=True))
    return Upkeep(after, grown, eaten, tuple(tale for tale in tales if tale))


def _fate(settlement: Village) -> Village:
    eaten = min(settlement.stock.food, settlement.population)
    hungry = settlement.population - eaten
    homeless = max(settlement.population - settlement.pop_cap, 0)
    lost = min(max((hungry + 1) // 2, (homeless + 1) // 2), settlement.population)
    fed = replace(settlement, stock=settlement.stock.minus(Stock(food=eaten)), population=settlement.population - lost)
    is_growing = not lost and 0 < fed.population < fed.pop_cap and fed.stock.food >= PLENTY * fed.population
    return replace(fed, population=fed.population + 1) if is_growing else fed


def _tale(before: Village, after: Village) -> str:
    if after.is_fallen and not before.is_fallen:
        return f"{after.name} falls: its last people are gone"
    if after.population < before.population:
        why = "hunger" if before.stock.food < before.population else "want of a roof"
        return f"{after.name} loses {before.population - after.population} to {why}"
    return f"a child is born in {after.name}" if after.population > before.population else ""
