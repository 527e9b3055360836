"""The Spark session of the tests that ask for it: starting one takes longer than most of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from tests.servers.process import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A session of the tests ends before it has been run often enough to repay what the second compiler takes.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
INSTALLED = Path(next(iter(getattr(find_spec("pyspark"), "submodule_search_locations", None) or ["pyspark"])))
HOME = ROOT / "build" / "spark"
# Loaded classes, which `tests.servers.spark_archive` writes. A JVM that cannot use them is not to print why.
ARCHIVE = HOME / "classes.jsa"
SHARED = f' -Xlog:disable -XX:SharedArchiveFile="{ARCHIVE}"'
JAVA = ("SPARK_HOME", "SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS")


def pytest_configure() -> None:
    """Every JVM that Spark starts below here is a brief one, in whichever process it is."""
    for name, value in brief_settings().items():
        os.environ.setdefault(name, value)


def brief_settings() -> dict[str, str]:
    """The environment of a JVM that starts soon and does not run for long."""
    make_home()
    return dict(zip(JAVA, (str(HOME), BRIEF, BRIEF + SHARED if ARCHIVE.exists() else BRIEF), strict=True))


def make_home() -> None:
    """Makes a SPARK_HOME without `pyspark.zip`: each worker process would compile the modules in it again."""
    HOME.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars"):
        draft = HOME / f"{name}.{os.getpid()}"  # another worker of the suite may be doing the same
        draft.symlink_to(INSTALLED / name)
        draft.replace(HOME / name)


def without_spark(environment: dict[str, str]) -> dict[str, str]:
    """Where nobody has set anything up for Spark, but that its processes are brief."""
    return {
        name: value for name, value in environment.items() if name in JAVA or not name.startswith(("SPARK", "PYSPARK"))
    }


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session of these tests keeps its files: `spark.log`, and `events` with what its pages would show."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="session")
def spark_url(spark: SparkSession) -> str:
    """Where other processes find the one session, so that they need not start another."""
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"


@pytest.fixture(scope="session")
def spark(spark_folder: Path, servers_allowed: None) -> Iterator[SparkSession]:
    """The one session that all tests share."""
    from tape.lake.session import open_session

    options = {**session_options(spark_folder), "spark.log.level": "INFO"}
    with open_session("local[2]", spark_folder, options, log_level="info") as session:
        yield session


def session_options(folder: Path) -> dict[str, str]:
    return {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(free_port()),
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.sql.shuffle.partitions": "2",
    }
