"""`make chaos SEED=n`: one run, or several seeds one after the other; the folder of a bad run is kept."""

import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import mkdtemp

import anyio

from tests.chaos.chaos import run
from tests.chaos.plan import Plan, plan


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--promotion", choices=("none", "synchronous", "lagging"))
    parser.add_argument("--without-lake", action="store_true", help="for a machine without Java")
    options = parser.parse_args()
    has_lake = not options.without_lake
    return max(
        [is_bad(seed, plan(seed, options.seconds, options.promotion, has_lake=has_lake)) for seed in options.seeds]
    )


def is_bad(seed: int, faults: Plan) -> bool:
    folder = Path(mkdtemp(prefix=f"tape-chaos-{seed}-"))
    report = anyio.run(run, folder, seed, faults)
    sys.stdout.write(f"{report}\n")
    if report.wrong:
        sys.stdout.write(f"the history and all output are in {folder}\n")
    else:
        shutil.rmtree(folder)
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main())
