"""A run is wrong when something grew that nobody asked for, and weak when it lacked a fault or had nothing to judge."""

from collections import Counter
from dataclasses import replace

import pytest

from tape.checker.check import JUDGES
from tape.checker.invariant_result import Anomaly, InvariantResult
from tests.chaos.plan import plan
from tests.chaos.report import EXPECTED, OF_LAKE, Report

GOOD = Report(
    seed=1,
    plan=plan(1, 5, "lagging"),
    done=Counter([*EXPECTED, *OF_LAKE, "new terms", "resyncs"]),
    stuck=(),
    findings={invariant: InvariantResult(1, []) for invariant in JUDGES},
    lines=10,
    asked=100,
    published=100,
    entries=100,
    rows={"tape_journal": 101, "core.outbox": 400},
    before={"server0": (80 << 20, 30)},
    after={"server0": (90 << 20, 40)},
    sessions=30,
)


def test_a_good_run_is_neither_wrong_nor_weak() -> None:
    assert (GOOD.wrong, GOOD.weak) == ([], [])


@pytest.mark.parametrize(
    "bad",
    [
        replace(GOOD, stuck=("no progress",)),
        replace(GOOD, entries=101),
        replace(GOOD, rows={"tape_keys": 1_000}),
        replace(GOOD, rows={"core.outbox_deliveries": 1_000}),
        replace(GOOD, after={"server0": (300 << 20, 40)}),
        replace(GOOD, after={"server0": (90 << 20, 400)}),
        replace(GOOD, sessions=200),
        replace(GOOD, findings={**GOOD.findings, "P1": InvariantResult(1, [Anomaly("P1", "it is gone", (1,))])}),
    ],
    ids=["stuck", "entries", "rows", "rows of the outbox", "memory", "descriptors", "sessions", "anomaly"],
)
def test_each_thing_that_must_not_be_is_reported(bad: Report) -> None:
    assert len(bad.wrong) == 1


@pytest.mark.parametrize("missing", [*EXPECTED, *OF_LAKE, "new terms", "resyncs"])
def test_a_run_that_lacked_a_fault_is_weak(missing: str) -> None:
    assert replace(GOOD, done=GOOD.done - Counter([missing])).weak == [f"no {missing}"]


def test_a_run_with_nothing_to_judge_is_weak() -> None:
    assert replace(GOOD, findings={**GOOD.findings, "P17": InvariantResult(0, [])}).weak == ["nothing to judge for P17"]
