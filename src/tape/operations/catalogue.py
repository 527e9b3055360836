"""All operations: `OPERATIONS` are run by `Handlers`, and each surface calls the others in its own way."""

from typing import Final

from tape.operations import (
    budgets,
    direct,
    effects,
    gates,
    journal_runs,
    obligations,
    outbox,
    reactions,
    runs,
    tasks,
    values,
)

OPERATIONS: Final = (
    *journal_runs.OPERATIONS, *runs.OPERATIONS, *effects.OPERATIONS, *obligations.OPERATIONS, *gates.OPERATIONS,
    *budgets.OPERATIONS, *values.OPERATIONS, *reactions.OPERATIONS, *tasks.OPERATIONS,
    *outbox.OPERATIONS,
)  # fmt: skip
ALL: Final = (*OPERATIONS, *direct.OPERATIONS)
