"""When a closed run is let go of."""

from datetime import timedelta

import pytest

from tape.core.ids import RunId, Seq
from tape.core.run import Head, RunMeta, RunRecord
from tape.server.upkeep import is_due


def closed(at_ms: int | None) -> RunRecord:
    head = Head(Seq(3), None if at_ms is None else Seq(3))
    return RunRecord(run_id=RunId("r"), meta=RunMeta(), head=head, opened_at_ms=0, closed_at_ms=at_ms)


@pytest.mark.parametrize(("at_ms", "expected"), [(0, True), (1_000, True), (1_001, False), (None, False)])
def test_a_run_is_due_when_it_has_been_closed_for_long_enough(at_ms: int | None, expected: bool) -> None:
    assert is_due(closed(at_ms), timedelta(minutes=30), now_ms=1_801_000) is expected
