"""`make chaos SEED=n`: one run, or several seeds one after the other; the folder of a bad run is kept."""

import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import mkdtemp

import anyio

from tests.chaos.chaos import run
from tests.chaos.plan import Promotion, plan


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--promotion", choices=("none", "synchronous", "lagging"))
    options = parser.parse_args()
    return max([is_bad(seed, options.seconds, options.promotion) for seed in options.seeds])


def is_bad(seed: int, seconds: float, promotion: Promotion | None) -> bool:
    folder = Path(mkdtemp(prefix=f"tape-chaos-{seed}-"))
    report = anyio.run(run, folder, seed, plan(seed, seconds, promotion))
    sys.stdout.write(f"{report}\n")
    if report.wrong:
        sys.stdout.write(f"the history and all output are in {folder}\n")
    else:
        shutil.rmtree(folder)
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main())
