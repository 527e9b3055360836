"""Budgets: reserved before they are spent."""

import pytest

from tape.core.budget import Admission, Amount, Budget
from tape.core.errors import NotReady, RunClosed, UsageError
from tape.core.ids import RunId
from tape.core.run_state import RunStatus
from tape.runs import budgets
from tests.unit.runs.book import Book

DOLLAR = 1_000_000


def capped(book: Book, usd: int | None = DOLLAR, tokens: int | None = None) -> RunId:
    run_id = book.begin().run_id
    book.write(budgets.cap(book.snapshot, run_id, usd, tokens))
    return run_id


def reserve(book: Book, run_id: RunId, name: str, usd: float = 0, tokens: int = 0) -> Admission:
    return book.write(budgets.reserve(book.snapshot, run_id, name, Amount.of(usd, tokens)))


def settle(book: Book, run_id: RunId, name: str, usd: float) -> Budget:
    return book.write(budgets.settle(book.snapshot, run_id, name, Amount.of(usd)))


def test_what_would_be_over_the_cap_is_refused_with_a_reason() -> None:
    book = Book()
    run_id = capped(book)
    book.write(budgets.charge(book.snapshot, run_id, Amount.of(0.9)))

    refused = reserve(book, run_id, "a", 0.5)

    assert not refused.is_admitted and "over the cap of 1.000000" in refused.reason


def test_what_is_reserved_cannot_be_reserved_again() -> None:
    book = Book()
    run_id = capped(book)

    first, second = reserve(book, run_id, "a", 0.6), reserve(book, run_id, "b", 0.6)

    assert (first.is_admitted, second.is_admitted) == (True, False)


def test_the_same_reservation_twice_is_one() -> None:
    book = Book()
    run_id = capped(book)

    first, second = reserve(book, run_id, "a", 0.6), reserve(book, run_id, "a", 0.6)

    assert first == second and second.budget.reserved == Amount.of(0.6)


def test_settling_gives_back_what_was_not_spent() -> None:
    book = Book()
    run_id = capped(book)
    reserve(book, run_id, "a", 0.9)

    settle(book, run_id, "a", 0.1)
    again = settle(book, run_id, "a", 0.8)

    assert (again.spent, again.reserved) == (Amount.of(0.1), Amount())
    assert book.said("budget") == ["set", "reserved", "settled"]


def test_tokens_have_a_cap_of_their_own() -> None:
    book = Book()
    run_id = capped(book, None, 100)

    assert reserve(book, run_id, "a", 1000, 100).is_admitted
    assert "101 tokens would be over the cap of 100" in reserve(book, run_id, "b", 0, 1).reason


def test_new_caps_keep_what_was_spent() -> None:
    book = Book()
    run_id = capped(book)
    book.write(budgets.charge(book.snapshot, run_id, Amount.of(0.9)))

    raised = book.write(budgets.cap(book.snapshot, run_id, 2 * DOLLAR, None))

    assert raised.spent == Amount.of(0.9) and reserve(book, run_id, "a", 1.1).is_admitted


def test_sums_are_exact() -> None:
    book = Book()
    run_id = capped(book, 300_000)

    admitted = [reserve(book, run_id, name, 0.1).is_admitted for name in "abc"]

    assert admitted == [True, True, True] and not reserve(book, run_id, "d", 0.000001).is_admitted


def test_nothing_is_settled_that_was_not_reserved() -> None:
    book = Book()

    with pytest.raises(NotReady, match="reserve before you settle"):
        settle(book, capped(book), "a", 1)


def test_an_ended_run_settles_but_reserves_no_more() -> None:
    book = Book()
    run_id = capped(book)
    reserve(book, run_id, "a", 0.5)
    book.end(run_id, RunStatus.TERMINAL)

    assert settle(book, run_id, "a", 0.5).spent == Amount.of(0.5)
    with pytest.raises(RunClosed):
        reserve(book, run_id, "b", 0.1)


@pytest.mark.parametrize("usd", [-1, float("nan"), float("inf"), 1e16])
def test_an_amount_is_a_sum_of_money(usd: float) -> None:
    with pytest.raises(UsageError, match="an amount is"):
        Amount.of(usd)
