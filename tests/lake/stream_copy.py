"""Streams one journal into another, in a process that can be killed: ORIGIN TARGET FOLDER ROWS."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tape.lake.session import open_session

COLUMNS = ("run_id", "type", "subject", "payload_json")


def copy_stream(spark: SparkSession, origin: str, target: str, folder: Path, rows: int) -> None:
    """Until the target has what the origin had when it began."""
    events = spark.readStream.format("tape").options(store=origin, maxRowsPerTrigger=rows).load().select(*COLUMNS)
    sink = events.writeStream.format("tape").options(store=target, sinkId="copy_stream")
    sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    origin, target, folder, rows = sys.argv[1:]
    with open_session("local[2]", Path(folder) / "spark") as session:
        copy_stream(session, origin, target, Path(folder), int(rows))
