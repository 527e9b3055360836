"""The judge of claims, judged."""

import pytest

from tests.contract.claim_history import ClaimSpan, overlaps


@pytest.mark.parametrize(("from_ms", "attempt", "is_refused"), [(10, 2, False), (9, 2, True), (10, 1, True)])
def test_a_history_with_two_holders_at_once_is_refused(from_ms: int, attempt: int, is_refused: bool) -> None:
    history = [ClaimSpan("d1", 1, 0, 10), ClaimSpan("d2", attempt, from_ms, 20)]

    assert bool(overlaps(history)) is is_refused
