"""Spark's own way to a Postgres table, where its driver is installed: JDBC, which comes as a jar and in no wheel."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession

DRIVER = "org.postgresql.Driver"
FETCHED = 10_000


def jar() -> Path | None:
    """The newest driver that Spark or Maven has."""
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    places = Path(spark.origin).parent / "jars", Path.home() / ".m2/repository/org/postgresql/postgresql"
    return max((found for place in places for found in place.rglob("postgresql-*.jar")), default=None)


def table(spark: SparkSession, url: str, rows: int, partitions: int) -> DataFrame:
    """The journal, in as many ranges of positions as the source has."""
    parts = urlsplit(url)
    options: dict[str, str | int] = {
        "url": f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}?user={parts.username}",
        "driver": DRIVER,
        "dbtable": "tape_journal",
        "fetchsize": FETCHED,
        "partitionColumn": "global_seq",
        "lowerBound": 1,
        "upperBound": rows + 1,
        "numPartitions": partitions,
    }
    return spark.read.format("jdbc").options(**options).load()
