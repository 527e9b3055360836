"""The Spark session of the tests that ask for it: starting one takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session of these tests keeps its files: `spark.log`, and `events` with what its pages would show."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="session")
def spark(spark_folder: Path) -> Iterator[SparkSession]:
    """The one session that all tests share."""
    from tape.lake.session import open_session

    events = {
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (spark_folder / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.log.level": "INFO",
        "spark.sql.shuffle.partitions": "2",
    }
    with open_session("local[2]", spark_folder, events, log_level="info") as session:
        yield session
