"""What tests of the lake share."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tape.compose import open_store
from tape.lake.log import DeltaLog
from tests.servers.databases import Databases


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store for a journal."""
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """The log of a lake that is not there yet."""
    return DeltaLog(tmp_path / "lake" / "journal")


@pytest.fixture(scope="session")
def postgres_template(postgres_databases: Databases) -> str:
    """A database with our schema, so that each test only clones it."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest, url: str) -> str:
    """A journal that a lake can be filled from, of each kind."""
    return url if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB, where we may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]).returncode:
        pytest.skip("only root can mount a small disk, and not everywhere")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)  # the JVM may still hold what it could not write
