"""The faults of a run of chaos: all of them follow from the seed."""

from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple, TypeAlias

Action: TypeAlias = Literal[
    "kill server", "stop server", "kill worker", "stop worker", "kill outbox", "cut", "stall", "kill database",
    "freeze database", "promote",
]  # fmt: skip
Promotion: TypeAlias = Literal["none", "synchronous", "lagging"]

WEIGHTS: dict[Action, int] = {
    "kill server": 4,
    "stop server": 2,
    "kill worker": 4,
    "stop worker": 3,
    "kill outbox": 3,
    "cut": 4,
    "stall": 3,
    "kill database": 2,
    "freeze database": 1,
}
FIRST: tuple[Action, ...] = ("cut", "kill worker", "kill server", "stop worker", "stall")  # each run has these
MEAN_PAUSE_S = 0.8


class Fault(NamedTuple):
    """What happens to which of several, when, and for how long if it is not at once."""

    at_s: float
    action: Action
    target: int
    for_s: float


class Plan(NamedTuple):
    promotion: Promotion
    faults: Sequence[Fault]


def plan(seed: int, seconds: float, promotion: Promotion | None = None) -> Plan:
    """The same for the same seed and length."""
    chance = Random(f"chaos {seed}")
    chosen: Promotion = chance.choice(("none", "synchronous", "lagging"))
    chosen = promotion or chosen
    actions = [*FIRST]
    chance.shuffle(actions)
    at_s, faults = 0.0, []
    while (at_s := at_s + chance.expovariate(1 / MEAN_PAUSE_S)) < seconds:
        action = actions.pop() if actions else chance.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        faults.append(Fault(at_s, action, chance.randrange(2), chance.uniform(0.2, 4.0)))
    if chosen != "none":
        faults.append(Fault(seconds * chance.uniform(0.4, 0.7), "promote", 0, 0.0))
    return Plan(chosen, sorted(faults))
