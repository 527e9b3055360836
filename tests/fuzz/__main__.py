"""Runs fuzz targets with atheris, which looks for inputs that reach code no input has reached before.

`make fuzz [ONLY=name] [SECONDS=60]`. It begins with the corpus in the repository. What it finds lies in build/fuzz:
new inputs in `<target>/corpus`, and an input that breaks a property in `<target>/crash-…`; put the latter into
tests/fuzz/corpus with its fix.
"""

import subprocess
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tape"]):
    from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(__file__).with_name("corpus")
LONGEST_INPUT = 4096
MIB = 2048


def main(only: str, seconds: str) -> int:
    """Each target has a process of its own, because a fuzzer ends its process."""
    codes = [run_apart(name, seconds) for name in TARGETS if only in ("", name)]
    return max(codes, default=2)


def run_apart(name: str, seconds: str) -> int:
    print(f"tape: fuzzing {name} for {seconds} s", flush=True)
    command = [sys.executable, "-m", "tests.fuzz", "--one", name, seconds]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def fuzz(name: str, seconds: str) -> None:
    found = ROOT / "build" / "fuzz" / name
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT}", f"-rss_limit_mb={MIB}", "-timeout=30",
        "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={found}/",
    ]  # fmt: skip
    with TARGETS[name]() as target:
        atheris.Setup([name, *options, str(found / "corpus"), str(CORPORA / name)], target)
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main(*sys.argv[1:]))
