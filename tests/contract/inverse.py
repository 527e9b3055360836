"""A compensator of a program that declares no effects."""

import tape


@tape.compensator()
def undo(result: object, amount: int) -> list[object]:
    return [result, amount, tape.idempotency_key()]
