"""Runs a page's commands and programs in this process, which has a Spark session already.

Starting Java for each command of a page takes longer than all the rest of it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tape.cli.main import run

STORE = re.compile(r"sqlite:///(?!/)")


class InProcess:
    """Runs with a reader's folder and variables.

    Spark's own processes stay in the folder where the session was started, so store URLs get an absolute path.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**environment, "TAPE_STORE": f"sqlite:///{folder}/.tape/tape.db"}

    def command(self, line: str) -> str:
        program, *words = shlex.split(self._absolute(line))
        assert program == "tape", line
        with self._as_reader() as printed:
            code = run(words)
        assert code == 0, f"{line}\nended with {code}\n{printed.getvalue()}"
        return printed.getvalue()

    def python(self, code: str) -> str:
        with self._as_reader() as printed:
            exec(compile(self._absolute(code), "the page", "exec"), {"__name__": "__main__"})
        return printed.getvalue()

    def _absolute(self, text: str) -> str:
        return STORE.sub(f"sqlite:///{self._folder}/", text)

    @contextmanager
    def _as_reader(self) -> Iterator[StringIO]:
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
            patch.chdir(self._folder)
            for name, value in self._environment.items():
                patch.setenv(name, value)
            yield printed
