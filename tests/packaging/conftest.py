"""The distributions, built once, and environments in which nothing else is installed."""

import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.house.tree import ROOT

FOREIGN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAPE_", "VIRTUAL_ENV"))}


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked sdist: what is missing there is missing here."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    return build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)


@pytest.fixture(scope="session")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its three dependencies, and without any extra; its `bin`."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*install, str(wheel)], env=FOREIGN, check=True, capture_output=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for path in needed("tape-bus"):
        (packages / path.name).symlink_to(path)
    return folder / "bin"


def build(kind: str, source: Path, into: Path) -> Path:
    """One distribution, made without a network by the backend that pip would call."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, env=FOREIGN, check=True, capture_output=True)
    (made,) = into.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return made


def needed(name: str) -> Iterator[Path]:
    """The files and folders of all that a distribution needs, without its extras."""
    seen = {name}
    waiting = [name]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            requirement = Requirement(text)
            if requirement.name in seen or not is_always_wanted(requirement):
                continue
            seen.add(requirement.name)
            waiting.append(requirement.name)
            yield from tops(requirement.name)


def is_always_wanted(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def tops(name: str) -> set[Path]:
    distribution = metadata.distribution(name)
    names = {path.parts[0] for path in distribution.files or () if path.parts[0] not in ("..", "__pycache__")}
    return {Path(str(distribution.locate_file(each))) for each in names}
