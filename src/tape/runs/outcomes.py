"""Compares where a fork ended with its parent: the agents' values, and how many entries differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tape.core.codec import JsonValue
from tape.core.diff import side_by_side
from tape.core.event import Entry
from tape.core.ids import RunId

METRIC: Final = "metric"
PROSPERITY: Final = "prosperity"


class RunOutcome(NamedTuple):
    """An agent's last value, and the parent's value after the same turn if there is one."""

    agent: str
    turn_num: int
    value: float
    parent_value: float | None

    @property
    def difference(self) -> float | None:
        return None if self.parent_value is None else self.value - self.parent_value


class SweptRun(NamedTuple):
    """A fork of a sweep: its mutation, its last seq, and its outcomes."""

    run_id: RunId
    mutation: dict[str, JsonValue]
    last_seq: int
    differing: int
    outcomes: tuple[RunOutcome, ...]
    error: str | None = None

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.mutation.items())


def outcomes(parent: Sequence[Entry], child: Sequence[Entry]) -> tuple[RunOutcome, ...]:
    """The last value of every agent of a child, beside the parent's value for the same turn."""
    theirs = {(agent, turn): value for agent, turn, value in _metrics(parent)}
    last = {agent: (turn, value) for agent, turn, value in _metrics(child)}
    return tuple(RunOutcome(agent, turn, value, theirs.get((agent, turn))) for agent, (turn, value) in last.items())


def differing(parent: Sequence[Entry], child: Sequence[Entry]) -> int:
    """How many places after the last shared entry differ; fork entry and mutation do not count."""
    rows = side_by_side(parent, child)
    return sum(not row.is_same for row in rows if row.other is None or not _is_beginning(row.other))


def _is_beginning(entry: Entry) -> bool:
    return entry.kind == "run" or entry.type == "mutation"


def _metrics(entries: Sequence[Entry]) -> list[tuple[str, int, float]]:
    payloads: list[Any] = [entry.payload for entry in entries if entry.type == METRIC]
    metrics = [payload for payload in payloads if isinstance(payload, dict) and payload.get("name") == PROSPERITY]
    return [(str(each["agent"]), int(each["turn_num"]), each["value"]) for each in metrics if _is_whole(each)]


def _is_whole(metric: dict[str, Any]) -> bool:
    return {"agent", "turn_num", "value"} <= metric.keys() and isinstance(metric["value"], int | float)
