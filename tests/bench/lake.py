"""The journal as a Spark source against the plainest way to have its bytes: COPY, and sqlite3 into Arrow."""

import atexit
import sqlite3
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Literal

import asyncpg
import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from tape.compose import open_store
from tape.lake.session import open_session
from tape.store.ranges import EVERYTHING, arrow_schema, sql_of
from tape.store.sqlite.migrate import migrate
from tape.store.statements import statements
from tests.bench import lake_jdbc, servers
from tests.bench.compare import Comparison, Goal, Side
from tests.bench.copying import copy, encoded
from tests.bench.loop import run
from tests.bench.workload import FOLDER, database, entries, events

AREA = "lake"
ROWS = 3_000_000  # to start a job takes a quarter of a second, which is no rate
PART = 10_000
BATCH = 1_000  # where it is fastest
PARTITIONS = 2
WARMING = 3, ROWS // 5  # reads, and the rows of each: until then a JVM compiles while it reads
UNIT = "rows/s"
COLUMNS = arrow_schema().names

_stack = ExitStack()  # what sides share lives as long as the program
atexit.register(_stack.close)


def comparisons() -> list[Comparison]:
    binary, text = partial(copied, "binary"), partial(copied, "text")
    return [
        _row("source, Postgres, against bytes of COPY as it is", postgres_source, text, Goal(">=", 0.9)),
        _row("source, Postgres, against bytes of COPY in binary", postgres_source, binary),
        *([_row("source, Postgres, against Spark's JDBC", postgres_source, jdbc)] if lake_jdbc.jar() else []),
        _row("source, SQLite, against sqlite3 into Arrow", sqlite_source, looped, Goal(">=", 1.0)),
        _row("source, SQLite, 1 partition, against sqlite3 into Arrow", partial(sqlite_source, 1), looped),
        _row("source, SQLite, 3 columns, against sqlite3 into Arrow", narrow_source, looped),
    ]


def _row(name: str, ours: Side, peer: Side, goal: Goal | None = None) -> Comparison:
    return Comparison(area=AREA, name=name, unit=UNIT, ours=ours, peer=peer, goal=goal)


def postgres_source() -> float:
    return _rate(_source(postgres(), PARTITIONS).load())


def sqlite_source(partitions: int = PARTITIONS) -> float:
    return _rate(_source(f"sqlite:///{file()}", partitions).load())


def narrow_source() -> float:
    """What a schema saves."""
    narrow = "global_seq BIGINT, subject STRING, ts_ms BIGINT"
    return _rate(_source(f"sqlite:///{file()}", PARTITIONS).schema(narrow).load())


def jdbc() -> float:
    return _rate(lake_jdbc.table(spark(), postgres(), ROWS, PARTITIONS))


def copied(form: Literal["binary", "text"]) -> float:
    """The server's own COPY of the same rows, its bytes dropped as they come."""
    return run(_copied(postgres(), form))


async def _copied(url: str, form: Literal["binary", "text"]) -> float:
    connection = await asyncpg.connect(url)
    try:
        started = perf_counter()
        await connection.copy_from_table("tape_journal", output=_drop, format=form)
        return ROWS / (perf_counter() - started)
    finally:
        await connection.close()


async def _drop(data: bytes) -> None:
    return


def looped() -> float:
    """One process, one connection: rows fetched, turned round and put into Arrow."""
    schema, found = arrow_schema(), 0
    with sqlite3.connect(f"file:{file()}?mode=ro", uri=True) as connection:
        started = perf_counter()
        cursor = connection.execute(sql_of("sqlite").selecting(COLUMNS, EVERYTHING), {"after": 0, "through": ROWS})
        while rows := cursor.fetchmany(BATCH):
            arrays = [
                pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)
            ]
            found += pa.RecordBatch.from_arrays(arrays, schema=schema).num_rows
        return found / (perf_counter() - started)


def _rate(frame: DataFrame) -> float:
    started = perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return ROWS / (perf_counter() - started)


def _source(store: str, partitions: int) -> DataFrameReader:
    rows = -(-ROWS // partitions)
    return spark().read.format("tape").options(store=store, rowsPerPartition=rows)


@cache
def spark() -> SparkSession:
    """A session that has read before: what starts with the first job is nobody's rate."""
    FOLDER.mkdir(exist_ok=True)
    folder = _stack.enter_context(TemporaryDirectory(prefix=".spark-", dir=FOLDER))
    driver = lake_jdbc.jar()
    options = {} if driver is None else {"spark.jars": str(driver)}
    session = _stack.enter_context(open_session(f"local[{PARTITIONS}]", Path(folder), options))
    reads, rows = WARMING
    for _ in range(reads):
        warm = session.read.format("tape").options(store=f"sqlite:///{file()}", toGlobalSeq=rows)
        warm.load().write.format("noop").mode("overwrite").save()
    return session


@cache
def file() -> Path:
    """A SQLite journal with so many rows."""
    location = _stack.enter_context(database())
    connection = location.connect()
    migrate(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(statements("sqlite", "append.sql")["insert_entry"], map(tuple, entries(events(ROWS))))
    connection.execute("COMMIT")
    connection.close()
    assert location.path is not None
    return location.path


@cache
def postgres() -> str:
    """The same in Postgres."""
    server = servers.postgres()
    return server.url(server.template(_fill))


async def _fill(url: str) -> None:
    async with open_store(url):
        pass
    connection = await asyncpg.connect(url)
    placed = entries(events(ROWS))
    for first in range(0, ROWS, PART):
        await copy(connection, encoded(placed[first : first + PART]))
    await connection.execute("VACUUM ANALYZE tape_journal")
    await connection.close()
