"""All operations, by name."""

from typing import Final

from tape.operations import budgets, effects, gates, obligations, runs, values

OPERATIONS: Final = (
    *runs.OPERATIONS, *effects.OPERATIONS, *obligations.OPERATIONS, *gates.OPERATIONS, *budgets.OPERATIONS,
    *values.OPERATIONS,
)  # fmt: skip
