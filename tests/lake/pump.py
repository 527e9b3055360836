"""Streams one journal into another, alone in a process that can be killed: ORIGIN TARGET FOLDER ROWS."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tape.lake.session import open_session

COLUMNS = ("run_id", "type", "subject", "payload_json")


def pump(spark: SparkSession, origin: str, target: str, folder: Path, rows: int) -> None:
    """Until the target has what the origin had when it began."""
    said = spark.readStream.format("tape").options(store=origin, maxRowsPerTrigger=rows).load().select(*COLUMNS)
    sink = said.writeStream.format("tape").options(store=target, sinkId="pump")
    sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    origin, target, folder, rows = sys.argv[1:]
    with open_session("local[2]", Path(folder) / "spark") as session:
        pump(session, origin, target, Path(folder), int(rows))
