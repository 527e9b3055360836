"""What is built is whole, and works where nothing else is installed."""

import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email import message_from_string
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tape.cli.extras import EXTRAS
from tests.architecture.tree import ROOT
from tests.packaging.conftest import FOREIGN

SOURCE = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRA = re.compile(r"(?:tape-bus|\$1)\[([a-z,]+)\]")
LEFT_OUT = {"__pycache__", ".DS_Store"}


def ours() -> set[str]:
    """Every file that a package of ours has in the source."""
    files = [path for path in SOURCE.rglob("*") if path.is_file() and not LEFT_OUT & set(path.parts)]
    return {path.relative_to(SOURCE).as_posix() for path in files}


def run(clean: Path, *command: str, cwd: Path) -> str:
    program = clean / command[0]
    ended = subprocess.run([program, *command[1:]], cwd=cwd, env=FOREIGN, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_wheel_has_every_file_of_the_source_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == ours()


@pytest.mark.parametrize("suffix", [".sql", ".lua", ".js", ".css", ".html", ".svg", ".proto", ".typed", ".txt"])
def test_a_wheel_has_what_is_not_python(suffix: str, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if name.startswith("tape/") and name.endswith(suffix)]

    assert found


def test_a_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())

    assert (metadata["Name"], metadata["License-Expression"], metadata["Requires-Python"]) == (
        "tape-bus",
        "Apache-2.0",
        ">=3.11",
    )
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "testing" not in metadata.get_all("Provides-Extra", [])


def test_an_sdist_has_what_it_takes_to_test_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 1}

    wanted = {
        "LICENSE",
        "Makefile",
        "README.md",
        "deploy",
        "docs",
        "examples",
        "pyproject.toml",
        "src",
        "tests",
        "tools",
    }
    assert wanted <= names


def test_it_is_the_wheel_that_a_clean_environment_imports(clean: Path, tmp_path: Path) -> None:
    output = run(
        clean, "python", "-c", "import tape, tape.testing; print(tape.__file__, tape.Event.__name__)", cwd=tmp_path
    )

    assert output.split() == [str(next(clean.parent.glob("lib/*/site-packages/tape/__init__.py"))), "Event"]


def test_the_command_works_with_nothing_but_the_three_dependencies(clean: Path, tmp_path: Path) -> None:
    store = ["--store", "sqlite:///first.db"]

    helped = run(clean, "tape", "--help", cwd=tmp_path)
    run(clean, "tape", "publish", "order-1", '{"price": 40}', "--type", "placed", "--open", *store, cwd=tmp_path)
    output = run(clean, "tape", "tail", "--run", "order-1", "--no-follow", "--json", *store, cwd=tmp_path)

    assert "One durable journal" in helped
    assert '"type":"placed"' in output


def test_what_an_extra_brings_is_asked_for_by_its_name(clean: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [clean / "tape", "serve"], cwd=tmp_path, env=FOREIGN, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert "tape-bus[server]" in ended.stderr


EVERYTHING = """
import contextlib, io, os, shlex
from tape.cli.examples import EXAMPLES
from tape.cli.main import run

for line in sorted(set(EXAMPLES.values())):
    program, *words = shlex.split(line.replace("//localhost", "//127.0.0.1:9"))
    if program == "tape" and words[:2] != ["value", "watch"]:
        words += ["--no-follow"] if words[0] == "tail" else []
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            code = run(words)
        print(code, line, "=>", errors.getvalue().strip())
"""


def test_no_command_breaks_for_want_of_an_extra(clean: Path, tmp_path: Path) -> None:
    output = run(clean, "python", "-c", EVERYTHING, cwd=tmp_path).splitlines()

    assert len(output) > 40
    assert [line for line in output if "internal error" in line] == []
    assert [line for line in output if "tape lake sync" in line and "tape-bus[spark]" not in line] == []


def test_every_extra_that_is_named_anywhere_is_one_of_the_package() -> None:
    files = [*(SOURCE / "tape").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*")]
    texts = [path.read_text() for path in files if path.is_file()]
    named = [extra for text in texts for some in EXTRA.findall(text) for extra in some.split(",")]

    assert "spark" in named
    assert {*named, *EXTRAS.values()} <= PROJECT["optional-dependencies"].keys()


@cache
def carried() -> Mapping[str, list[str]]:
    """The distributions of each module, read from every installed file once."""
    return metadata.packages_distributions()


@pytest.mark.parametrize(("module", "extra"), EXTRAS.items())
def test_an_extra_brings_the_module_it_is_asked_for(module: str, extra: str) -> None:
    carriers = carried()[module.partition(".")[0]]
    brought = {Requirement(each).name for each in PROJECT["optional-dependencies"][extra]}

    assert {name.replace("_", "-") for name in carriers} & brought


def test_users_can_test_with_nothing_but_the_wheel(clean: Path, tmp_path: Path) -> None:
    program = (
        "import anyio\nfrom tape.testing import open_node\n"
        "async def main():\n"
        "    async with open_node() as node:\n"
        "        await node.publish('r', 1)\n"
        "        await node.assert_entries([{'payload': 1}])\n"
        "        print('held')\n"
        "anyio.run(main)\n"
    )

    assert run(clean, "python", "-c", program, cwd=tmp_path) == "held\n"
