"""A short run of chaos with a fixed seed; `make chaos SEED=n` is longer, with any."""

from pathlib import Path

from tests.chaos.chaos import run
from tests.chaos.plan import plan
from tests.conftest import Scale

SEED = 259  # four seconds of it kill a server and a worker, cut, promote, lose wake-ups and fill the disk
SECONDS = 4


async def test_a_short_run_of_chaos_contradicts_no_invariant_and_recovers(
    servers_allowed: None, tmp_path: Path, scale: Scale
) -> None:
    report = await run(tmp_path, SEED, plan(SEED, scale(SECONDS), "synchronous", has_lake=False))

    assert report.wrong == [], str(report)
    assert report.done["kill server"] and report.done["cut"], str(report)


def test_a_seed_gives_the_same_faults_again() -> None:
    assert plan(3, 20) == plan(3, 20) != plan(4, 20)
