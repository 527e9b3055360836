"""The faults of a run of chaos: all of them follow from the seed."""

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, TypeAlias

Action: TypeAlias = Literal[
    "kill server", "stop server", "kill worker", "stop worker", "kill outbox", "kill lake", "cut", "stall",
    "stall slow reader", "lose wake-ups", "kill database", "freeze database", "fill database disk", "fill lake disk",
    "promote",
]  # fmt: skip
Promotion: TypeAlias = Literal["none", "synchronous", "lagging"]

WEIGHTS: dict[Action, int] = {
    "kill server": 4,
    "stop server": 2,
    "kill worker": 4,
    "stop worker": 3,
    "kill outbox": 3,
    "kill lake": 1,
    "cut": 4,
    "stall": 3,
    "stall slow reader": 2,
    "lose wake-ups": 2,
    "kill database": 2,
    "freeze database": 1,
    "fill database disk": 1,
    "fill lake disk": 1,
}
FIRST: tuple[Action, ...] = (  # each run has these
    "cut", "kill worker", "kill server", "stop worker", "stall", "stall slow reader", "lose wake-ups",
    "fill database disk",
)  # fmt: skip
OF_LAKE: tuple[Action, ...] = ("kill lake", "fill lake disk")
MEAN_PAUSE_S = 0.8


class Fault(NamedTuple):
    """What happens to which of several, when, and for how long if it is not at once."""

    at_s: float
    action: Action
    target: int
    for_s: float


class Plan(NamedTuple):
    """A database with or without a standby, a lake or none, and the faults in order."""

    promotion: Promotion
    has_lake: bool
    faults: Sequence[Fault]


def plan(seed: int, seconds: float, promotion: Promotion | None = None, *, has_lake: bool = True) -> Plan:
    """The same for the same arguments."""
    chance = Random(f"chaos {seed}")
    chosen: Promotion = chance.choice(("none", "synchronous", "lagging"))
    chosen = promotion or chosen
    actions = [*FIRST, *(OF_LAKE if has_lake else ())]
    chance.shuffle(actions)
    weights = {action: weight for action, weight in WEIGHTS.items() if has_lake or action not in OF_LAKE}
    at_s, faults = 0.0, []
    while (at_s := at_s + chance.expovariate(1 / MEAN_PAUSE_S)) < seconds:
        action = actions.pop() if actions else chance.choices([*weights], [*weights.values()])[0]
        faults.append(Fault(at_s, action, chance.randrange(2), chance.uniform(0.2, 4.0)))
    if chosen != "none":
        faults.append(Fault(seconds * chance.uniform(0.4, 0.7), "promote", 0, 0.0))
    return Plan(chosen, has_lake, sorted(faults))
