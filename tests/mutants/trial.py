"""Tries a mistake: a copy of the repository, some files of it changed, and the tests that must notice, in a process."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

import anyio
from anyio import to_thread

from tests.mutants.mistakes import ROOT, Mistake

MOST_S: Final = 120
DEADLINE_S: Final = 30  # of a test that waits: a mistake that makes it wait for ever is noticed within the trial
TESTS_FAILED: Final = 1  # an exit code of pytest; a module that cannot be imported is a 2, a test that is not there a 4
LINKED: Final = (".venv", ".browser")
LEFT_OUT: Final = (".git", ".hypothesis", ".*_cache", "__pycache__", "build", "dist", "shots", *LINKED)

_FAILED: Final = re.compile(r"^FAILED (tests/.+?)(?: - .*)?$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"^\d+ passed(, \d+ warnings?)? in .+$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the tests ended; `failed` is the test that failed first, None if none did."""

    code: int | None
    output: str
    seconds: float

    @property
    def failed(self) -> str | None:
        found = _FAILED.search(self.output) if self.code == TESTS_FAILED else None
        return None if found is None else found[1]

    @property
    def has_passed(self) -> bool:
        """Whether every test ran and passed; a skipped one has not."""
        return self.code == 0 and _SUMMARY.search(self.output) is not None

    @property
    def end(self) -> str:
        """In a few words, for a trial that should have ended otherwise."""
        if self.code is None:
            return f"not within {self.seconds:.0f} s"
        return "all passed" if self.code == 0 else f"pytest ended with {self.code}"


class Repository:
    """A copy of the repository, in which one mistake at a time is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    @contextmanager
    def mistaken(self, mistake: Mistake) -> Iterator[None]:
        """Makes a mistake for as long as its block."""
        with ExitStack() as made:
            for change in mistake.changes:
                path = self._folder / change.path
                before = path.read_text(encoding="utf-8")
                made.callback(_write, path, before)
                _write(path, change.applied_to(before))
            yield

    async def test(self, tests: Sequence[str], *options: str, most_s: float = MOST_S) -> Trial:
        """Runs tests of the copy, with the product of the copy in all processes that they start."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
        environment = {**os.environ, "PYTHONPATH": str(self._folder / "src"), "COLUMNS": "500"}
        environment["TAPE_TEST_DEADLINE_S"] = str(DEADLINE_S)
        began = time.monotonic()
        with TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code = await _wait(process, most_s)
            output.seek(0)
            text = output.read().decode(errors="replace")
        return Trial(code=code, output=text, seconds=time.monotonic() - began)


@contextmanager
def copied() -> Iterator[Repository]:
    """A copy that is deleted afterwards."""
    with TemporaryDirectory(prefix="tape-mutants-") as folder:
        yield Repository(Path(folder) / "tape")


def _write(path: Path, source: str) -> None:
    path.write_text(source, encoding="utf-8")
    # Python takes bytecode for current if the source has the size and the second of the one that it was compiled from.
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


async def _wait(process: "subprocess.Popen[bytes]", most_s: float) -> int | None:
    """The exit code, or None if it took too long; whatever happens, nothing of its session stays."""
    try:
        with anyio.move_on_after(most_s):
            return await to_thread.run_sync(process.wait, abandon_on_cancel=True)
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return None
