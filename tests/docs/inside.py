"""What a page types where the Spark session is: in this process, which has it already."""

import ast
import asyncio
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tape.cli.main import run

STORE = re.compile(r"sqlite:///(?!/)")


class Inside:
    """A reader's folder and variables, put on for as long as a command or a program runs.

    The session's own processes stay where it was started, so a store is said with its whole path.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**environment, "TAPE_STORE": f"sqlite:///{folder}/.tape/tape.db"}

    def command(self, line: str) -> str:
        program, *words = shlex.split(self._whole(line))
        assert program == "tape", line
        with self._put_on() as said:
            code = run(words)
        assert code == 0, f"{line}\nended with {code}\n{said.getvalue()}"
        return said.getvalue()

    def python(self, code: str) -> str:
        with self._put_on() as said:
            result = eval(compile(self._whole(code), "the page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
            if inspect.iscoroutine(result):
                asyncio.run(result)
        return said.getvalue()

    def _whole(self, text: str) -> str:
        return STORE.sub(f"sqlite:///{self._folder}/", text)

    @contextmanager
    def _put_on(self) -> Iterator[StringIO]:
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
            patch.chdir(self._folder)
            for name, value in self._environment.items():
                patch.setenv(name, value)
            yield said
