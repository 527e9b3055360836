"""The distributions, built once, and environments in which nothing else is installed."""

import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.tree import ROOT

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
    return outfit(wheel, tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="session")
def first_hour(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extras that the tutorial names, and no other."""
    return outfit(wheel, tmp_path_factory.mktemp("first-hour"), "cel", "grpc", "server")


def outfit(wheel: Path, folder: Path, *extras: str) -> Path:
    """An environment with the wheel and what it needs with these extras; its `bin`."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*install, str(wheel)], env=FOREIGN, check=True, capture_output=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for path in set(needed("tape-bus", *extras)):
        (packages / path.name).symlink_to(path)
    return folder / "bin"


def build(kind: str, source: Path, into: Path) -> Path:
    """One distribution, made without a network by the backend that pip would call."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, env=FOREIGN, check=True, capture_output=True)
    (made,) = into.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return made


def needed(name: str, *extras: str) -> Iterator[Path]:
    """The files and folders of all that a distribution needs with these extras."""
    seen = {name}
    waiting = [(name, extras)]
    while waiting:
        distribution, wanted = waiting.pop()
        for text in metadata.requires(distribution) or ():
            requirement = Requirement(text)
            if requirement.name in seen or not is_wanted(requirement, wanted):
                continue
            seen.add(requirement.name)
            waiting.append((requirement.name, tuple(requirement.extras)))
            yield from tops(requirement.name)


def is_wanted(requirement: Requirement, extras: Sequence[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def tops(name: str) -> set[Path]:
    distribution = metadata.distribution(name)
    names = {path.parts[0] for path in distribution.files or () if path.parts[0] not in ("..", "__pycache__")}
    return {Path(str(distribution.locate_file(each))) for each in names}
