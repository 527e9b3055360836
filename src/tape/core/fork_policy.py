"""What happens to effects in a fork.

The policy is stored in the run's labels, because labels are part of every copy of a run's state.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tape.core.errors import UsageError, quoted
from tape.core.ids import RunId

RESERVED: Final = "tape."
POLICY: Final = "tape.effects"
PARENT: Final = "tape.parent_run_id"
FORK_SEQ: Final = "tape.fork_seq"


class EffectPolicy(StrEnum):
    """Serve recorded results, call a stub, or let effects happen. Inherited results are always served."""

    REPLAY = "replay"
    STUB = "stub"
    LIVE = "live"

    @property
    def suppresses_effects(self) -> bool:
        """Whether the fork must change nothing outside."""
        return self is not EffectPolicy.LIVE


def policy(text: object) -> EffectPolicy:
    if not isinstance(text, str) or text not in set(EffectPolicy):
        raise UsageError(f"effects is {', '.join(EffectPolicy)}, not {quoted(text)}")
    return EffectPolicy(text)


def policy_of(labels: Mapping[str, str]) -> EffectPolicy:
    return EffectPolicy(labels.get(POLICY, EffectPolicy.LIVE))


def parent_of(labels: Mapping[str, str]) -> RunId | None:
    parent = labels.get(PARENT)
    return None if parent is None else RunId(parent)


def labels_of_child(labels: Mapping[str, str], parent: RunId, at_seq: int, effects: EffectPolicy) -> Mapping[str, str]:
    """The parent's labels, and where the child comes from."""
    own = {name: text for name, text in labels.items() if not name.startswith(RESERVED)}
    return {**own, PARENT: parent, FORK_SEQ: str(at_seq), POLICY: effects.value}


def key_in(key: str, run_id: str, other: str) -> str:
    """The key that the same effect has in another run of the lineage."""
    return f"{other}{key.removeprefix(run_id)}" if key.startswith(f"{run_id}/") else key
