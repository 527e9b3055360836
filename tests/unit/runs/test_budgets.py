"""Budgets: reserved before they are spent."""

import pytest

from tape.core.budget import Admission, Amount, Budget
from tape.core.errors import Conflict, NotReady, RunClosed, UsageError
from tape.core.ids import RunId
from tape.core.run_state import RunStatus
from tape.runs import budgets
from tests.unit.runs.memory_ledgers import MemoryLedgers

DOLLAR = 1_000_000


def capped(ledgers: MemoryLedgers, usd: int | None = DOLLAR, tokens: int | None = None) -> RunId:
    run_id = ledgers.begin().run_id
    ledgers.write(budgets.cap(ledgers.snapshot, run_id, usd, tokens))
    return run_id


def reserve(ledgers: MemoryLedgers, run_id: RunId, name: str, usd: float = 0, tokens: int = 0) -> Admission:
    return ledgers.write(budgets.reserve(ledgers.snapshot, run_id, name, Amount.of(usd, tokens)))


def settle(ledgers: MemoryLedgers, run_id: RunId, name: str, usd: float) -> Budget:
    return ledgers.write(budgets.settle(ledgers.snapshot, run_id, name, Amount.of(usd)))


def test_what_would_be_over_the_cap_is_refused_with_a_reason() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)
    ledgers.write(budgets.charge(ledgers.snapshot, run_id, Amount.of(0.9)))

    refused = reserve(ledgers, run_id, "a", 0.5)

    assert not refused.is_admitted and "over the cap of 1.000000" in refused.reason


def test_what_is_reserved_cannot_be_reserved_again() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)

    first, second = reserve(ledgers, run_id, "a", 0.6), reserve(ledgers, run_id, "b", 0.6)

    assert (first.is_admitted, second.is_admitted) == (True, False)


def test_the_same_reservation_twice_is_one() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)

    first, second = reserve(ledgers, run_id, "a", 0.6), reserve(ledgers, run_id, "a", 0.6)

    assert first == second and second.budget.reserved == Amount.of(0.6)


def test_settling_gives_back_what_was_not_spent() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)
    reserve(ledgers, run_id, "a", 0.9)

    settle(ledgers, run_id, "a", 0.1)
    again = settle(ledgers, run_id, "a", 0.1)

    assert (again.spent, again.reserved) == (Amount.of(0.1), Amount())
    with pytest.raises(Conflict, match="stays"):
        settle(ledgers, run_id, "a", 0.8)
    assert ledgers.verbs("budget") == ["set", "reserved", "settled"]


def test_tokens_have_a_cap_of_their_own() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers, None, 100)

    assert reserve(ledgers, run_id, "a", 1000, 100).is_admitted
    assert "101 tokens would be over the cap of 100" in reserve(ledgers, run_id, "b", 0, 1).reason


def test_new_caps_keep_what_was_spent() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)
    ledgers.write(budgets.charge(ledgers.snapshot, run_id, Amount.of(0.9)))

    raised = ledgers.write(budgets.cap(ledgers.snapshot, run_id, 2 * DOLLAR, None))

    assert raised.spent == Amount.of(0.9) and reserve(ledgers, run_id, "a", 1.1).is_admitted


def test_sums_are_exact() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers, 300_000)

    admitted = [reserve(ledgers, run_id, name, 0.1).is_admitted for name in "abc"]

    assert admitted == [True, True, True] and not reserve(ledgers, run_id, "d", 0.000001).is_admitted


def test_nothing_is_settled_that_was_not_reserved() -> None:
    ledgers = MemoryLedgers()

    with pytest.raises(NotReady, match="reserve before you settle"):
        settle(ledgers, capped(ledgers), "a", 1)


def test_an_ended_run_settles_but_reserves_no_more() -> None:
    ledgers = MemoryLedgers()
    run_id = capped(ledgers)
    reserve(ledgers, run_id, "a", 0.5)
    ledgers.end(run_id, RunStatus.TERMINAL)

    assert settle(ledgers, run_id, "a", 0.5).spent == Amount.of(0.5)
    with pytest.raises(RunClosed):
        reserve(ledgers, run_id, "b", 0.1)


@pytest.mark.parametrize("usd", [-1, float("nan"), float("inf"), 1e16])
def test_an_amount_is_a_sum_of_money(usd: float) -> None:
    with pytest.raises(UsageError, match="an amount is"):
        Amount.of(usd)
