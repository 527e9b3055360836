"""Writes the Java classes that Spark loads to an archive, from which the JVMs of tests start in half the time."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

from tape.lake.session import open_session
from tests.lake.journals import fill, numbered, source
from tests.lake.stream_copy import copy_stream
from tests.servers.spark import ARCHIVE, BRIEF, HOME, make_home, session_options


def main() -> None:
    if is_current():
        return
    make_home()
    draft = ARCHIVE.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    os.environ |= {
        "SPARK_HOME": str(HOME),
        "SPARK_LAUNCHER_OPTS": BRIEF,
        "SPARK_SUBMIT_OPTS": f'{BRIEF} -Xlog:disable -XX:ArchiveClassesAtExit="{draft}"',
    }
    with TemporaryDirectory() as folder:
        load_classes(Path(folder))
    draft.replace(ARCHIVE)


def is_current() -> bool:
    return ARCHIVE.exists() and ARCHIVE.stat().st_mtime > (HOME / "jars").stat().st_mtime


def load_classes(folder: Path) -> None:
    """Does once what tests do, and waits for the JVM, which writes the archive when it exits."""
    (folder / "events").mkdir()
    with open_session("local[2]", folder, session_options(folder)) as spark:
        read_and_write(spark, folder)
        jvm = SparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - there is no public way
    jvm.stdin.close()
    jvm.wait()


def read_and_write(spark: SparkSession, folder: Path) -> None:
    journal, copied, files = f"sqlite:///{folder}/journal.db", f"sqlite:///{folder}/copied.db", str(folder / "files")
    fill(journal, numbered(40))
    source(spark, journal, pushdown=True, rowsPerPartition=10).where("run_id = 'run1'").write.parquet(files)
    written = spark.read.parquet(files)
    written.groupBy("type").count().orderBy("type").collect()
    written.mapInArrow(lambda batches: batches, written.schema).collect()
    copy_stream(spark, journal, copied, folder, rows=20)


if __name__ == "__main__":
    main()
