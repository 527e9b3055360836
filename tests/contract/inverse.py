"""An inverse that is only ever found by its name."""

import tape


def undo(result: object, amount: int) -> list[object]:
    return [result, amount, tape.idempotency_key()]
