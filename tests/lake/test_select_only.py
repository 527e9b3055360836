"""Which queries are a SELECT and nothing else, and what a confined thread cannot do to a file."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pyarrow as pa
import pytest

from tape.core.errors import UsageError
from tape.lake.confinement import confine
from tape.lake.log import DeltaLog
from tape.store.duckdb.parquet import NO_SPILLING, Parquet
from tape.store.duckdb.select_only import check_tree
from tests.lake.hostile_queries import HOSTILE, contents, spelled
from tests.lake.local_lake import fill, opened, publish

SELECTS = [
    "FROM journal",
    "TABLE journal",
    "VALUES (1), (2)",
    "DESCRIBE journal",
    "SUMMARIZE journal",
    "SHOW TABLES",
    "SELECT type, count(*) AS n FROM journal GROUP BY ALL HAVING n > 1 ORDER BY n DESC LIMIT 5%",
    "SELECT DISTINCT ON (type) * FROM journal USING SAMPLE 10%",
    "SELECT row_number() OVER (PARTITION BY run_id ORDER BY seq) AS k FROM journal QUALIFY k < 3",
    "SELECT a.seq FROM journal a LEFT JOIN journal b USING (seq) SEMI JOIN journal c ON a.seq = c.seq",
    "SELECT payload_json ->> '$.n', payload_json::JSON, seq::DECIMAL(9, 2), [x + 1 FOR x IN [seq]] FROM journal",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t",
    "WITH a AS MATERIALIZED (SELECT max(seq) FROM journal) (FROM a) UNION ALL (SELECT 1) EXCEPT (SELECT 2)",
    "SELECT * FROM (PIVOT journal ON type IN ('a', 'b') USING count(*))",
    "SELECT * FROM range(3), unnest([1, 2]), json_each('[1]'), generate_series(1, 2) WITH ORDINALITY",
    "SELECT EXISTS (FROM journal), 'COPY x TO ''y''' AS \"INSERT_QUERY_NODE\", {'type': 'COPY_QUERY_NODE'}",
]

WRITES = """
import os, sys
from pathlib import Path
import duckdb
from tape.lake.confinement import confine
from threading import Thread
folder = Path(sys.argv[1])
assert confine()
copy = f"COPY (SELECT 1) TO '{folder}/kept.csv' (USE_TMP_FILE false)"
attempts = [
    lambda: duckdb.execute(copy),
    lambda: (folder / "new").write_text("x"),
    lambda: (folder / "new").mkdir(),
    lambda: (folder / "kept.csv").unlink(),
    lambda: (folder / "kept.csv").rename(folder / "moved"),
    lambda: os.truncate(folder / "kept.csv", 0),
    lambda: os.symlink("x", folder / "new"),
]
refused = 0
def attempt(what):
    global refused
    try:
        what()
    except (OSError, duckdb.Error):
        refused += 1
for what in attempts:
    thread = Thread(target=attempt, args=(what,))
    thread.start()
    thread.join()
assert refused == len(attempts), refused
assert (folder / "kept.csv").read_text() == "kept"
print("ok")
"""


@pytest.fixture
def parquet(tmp_path: Path) -> Iterator[Parquet]:
    with Parquet(tmp_path, []) as parquet:
        yield parquet


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    """A lake of 60 entries in a folder with a secret file."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "secret.csv").write_text("secret\n")
    anyio.run(_fill, folder)
    return DeltaLog(folder / "lake" / "journal")


async def _fill(folder: Path) -> None:
    url = f"sqlite:///{folder}/journal.db"
    async with opened(url) as (store, journal):
        await publish(journal, 60)
        await fill(store, DeltaLog(folder / "lake" / "journal"), url)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_but_a_select_runs_and_no_file_changes(
    lake: DeltaLog, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = lake.table.parent.parent
    monkeypatch.chdir(folder)
    before = contents(folder)

    with (
        Parquet(lake.table, [file.path for file in lake.snapshot().files], bounds=NO_SPILLING) as parquet,
        pytest.raises(UsageError),
    ):
        parquet.query(spelled(HOSTILE[name], lake.table))

    assert contents(folder) == before


@pytest.mark.parametrize("sql", SELECTS)
def test_a_query_that_only_selects_runs(parquet: Parquet, sql: str) -> None:
    assert parquet.query(sql).names


@pytest.mark.parametrize("sql", ["SELECT '\ud800'", "\udcff", 'SELECT 1 AS "\udfff"'])
def test_a_query_with_a_lone_surrogate_is_refused(parquet: Parquet, sql: str) -> None:
    with pytest.raises(UsageError, match="lone surrogate"):
        parquet.query(sql)


def test_a_variable_of_this_program_is_no_table(parquet: Parquet) -> None:
    secret = pa.table({"secret": ["secret"]})

    with pytest.raises(UsageError, match="secret"):
        parquet.query("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_a_part_of_a_query_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="may not contain OVERWRITE QUERY"):
        check_tree('{"error": false, "statements": [{"node": {"type": "OVERWRITE_QUERY_NODE"}}]}')


def test_a_confined_thread_and_those_it_starts_change_no_file(tmp_path: Path) -> None:
    (tmp_path / "kept.csv").write_text("kept")
    if not can_confine():
        pytest.skip("this kernel has no Landlock")

    ended = subprocess.run([sys.executable, "-c", WRITES, str(tmp_path)], capture_output=True, text=True, check=False)

    assert ended.stdout == "ok\n", ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["kept.csv"]


def can_confine() -> bool:
    asking = f"from {confine.__module__} import confine; raise SystemExit(not confine())"
    return subprocess.run([sys.executable, "-c", asking], check=False).returncode == 0
