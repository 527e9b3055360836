"""Runs of chaos with several seeds; `--scale` makes each of them longer. Only a soak has the time for them."""

from pathlib import Path

import pytest

from tests import figures
from tests.chaos.chaos import run
from tests.chaos.plan import plan
from tests.conftest import Scale

SEEDS = range(1, 6)
SECONDS = 20


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_run_of_chaos_contradicts_no_invariant_and_recovers(
    servers_allowed: None, seed: int, tmp_path: Path, scale: Scale
) -> None:
    report = await run(tmp_path, seed, plan(seed, scale(SECONDS)))

    for what, times in report.done.items():
        figures.add(what, times)
    figures.add("entries in the journal", report.entries)
    for weakness in report.weak:
        figures.note(f"seed {seed} is weak: {weakness}")
    assert report.wrong == [], str(report)
