"""Which cursors of earlier terms may be resumed."""

import pytest

from tape.core.ids import Epoch, GlobalSeq
from tape.core.term import Term, is_resumable

TERMS = [Term(Epoch(10), GlobalSeq(1)), Term(Epoch(20), GlobalSeq(19)), Term(Epoch(30), GlobalSeq(19))]


@pytest.mark.parametrize("epoch", [10, 20, 30])
def test_a_position_below_the_first_of_every_later_term_is_resumed(epoch: int) -> None:
    assert is_resumable(TERMS, epoch, 18)


@pytest.mark.parametrize("epoch", [10, 20])
def test_a_position_that_a_later_term_gave_again_is_not_resumed(epoch: int) -> None:
    assert not is_resumable(TERMS, epoch, 19)


def test_any_position_of_the_present_term_is_resumed() -> None:
    assert is_resumable(TERMS, 30, 1_000)


@pytest.mark.parametrize("epoch", [5, 15, 40])
def test_no_position_of_an_epoch_that_is_no_term_is_resumed(epoch: int) -> None:
    assert not is_resumable(TERMS, epoch, 0)


def test_a_term_that_began_lower_than_the_one_before_it_counts_for_all_before_it() -> None:
    terms = [*TERMS, Term(Epoch(40), GlobalSeq(5))]

    assert not is_resumable(terms, 10, 5) and is_resumable(terms, 10, 4)
