"""What tests of the lake share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tape.compose import open_store
from tape.lake.log import Log
from tape.lake.session import open_session
from tests.servers.databases import Databases


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store for a journal."""
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """The log of a lake that is not there yet."""
    return Log(tmp_path / "lake" / "journal")


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session of these tests keeps its files: `spark.log`, and `events` with what its pages would show."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="session")
def spark(spark_folder: Path) -> Iterator[SparkSession]:
    """The one session that all tests share: starting one takes longer than most of them."""
    events = {
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (spark_folder / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.log.level": "INFO",
        "spark.sql.shuffle.partitions": "2",
    }
    with open_session("local[2]", spark_folder, events, log_level="info") as session:
        yield session


@pytest.fixture(scope="session")
def postgres_template(postgres_databases: Databases) -> str:
    """A database with our schema, so that each test only clones it."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


@pytest.fixture(params=["sqlite", "postgres"])
def lasting_url(request: pytest.FixtureRequest, url: str) -> str:
    """A journal that a lake can be filled from, of each kind."""
    return url if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
