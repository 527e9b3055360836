"""Statements that would write, read elsewhere or run something else than a SELECT, and what a folder holds."""

import hashlib
from pathlib import Path
from typing import Final

# `{data}` is a Parquet file of the lake, `{log}` a file of its log, `{new}` a path in the lake's folder that is free,
# `{other}` a file beside the lake.
HOSTILE: Final = {
    "copy": "COPY (SELECT 1 AS n) TO '{data}' (FORMAT parquet)",
    "copy-in-place": "COPY (SELECT 1 AS n) TO '{data}' (FORMAT parquet, USE_TMP_FILE false)",
    "explain-analyze-copy": "EXPLAIN ANALYZE COPY (SELECT 1 AS n) TO '{data}' (FORMAT parquet)",
    "explain-copy-in-place": "EXPLAIN ANALYZE COPY (SELECT 1 AS n) TO '{data}' (FORMAT csv, USE_TMP_FILE false)",
    "explain-analyze-copy-to-the-log": "EXPLAIN ANALYZE COPY (SELECT 1 AS n) TO '{log}' (FORMAT csv)",
    "explain-analyze-copy-new": "EXPLAIN (ANALYZE) COPY (SELECT range FROM range(100000)) TO '{new}'",
    "explain-copy": "EXPLAIN COPY (SELECT 1) TO '{new}'",
    "explain-analyze-create": "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
    "explain-analyze-export": "EXPLAIN ANALYZE EXPORT DATABASE '{new}'",
    "copy-in-a-cte": "WITH x AS (COPY (SELECT 1 AS n) TO '{data}' (USE_TMP_FILE false)) SELECT * FROM x",
    "copy-in-an-unused-cte": "WITH x AS (COPY (SELECT 1 AS n) TO '{new}') SELECT 1",
    "copy-in-a-nested-cte": "SELECT * FROM (WITH x AS MATERIALIZED (COPY journal TO '{new}') SELECT * FROM x) AS y",
    "copy-in-a-scalar-subquery": "SELECT (WITH x AS (COPY journal TO '{log}') SELECT count(*) FROM x)",
    "insert-in-a-cte": "WITH x AS (INSERT INTO journal (seq) VALUES (1) RETURNING *) SELECT * FROM x",
    "delete-in-a-cte": "WITH x AS (DELETE FROM journal RETURNING *) SELECT * FROM x",
    "describe-a-copy": "DESCRIBE WITH x AS (COPY journal TO '{new}') SELECT * FROM x",
    "summarize-a-copy": "SUMMARIZE WITH x AS (COPY (SELECT 1) TO '{new}') SELECT * FROM x",
    "copy-from-database": "COPY FROM DATABASE memory TO other",
    "export": "EXPORT DATABASE '{new}'",
    "import": "IMPORT DATABASE '{new}'",
    "attach": "ATTACH '{new}' AS stolen",
    "attach-in-place": "ATTACH '{data}' AS stolen",
    "detach": "DETACH memory",
    "create-table": "CREATE TABLE t AS SELECT 1",
    "create-view": "CREATE OR REPLACE VIEW journal AS SELECT 1",
    "create-secret": "CREATE PERSISTENT SECRET s (TYPE s3)",
    "insert": "INSERT INTO journal (seq) VALUES (1)",
    "update": "UPDATE journal SET seq = 1",
    "delete": "DELETE FROM journal",
    "install": "INSTALL httpfs",
    "load": "LOAD '{data}'",
    "set": "SET enable_external_access = true",
    "set-temporary-folder": "SET temp_directory = '{new}'",
    "set-home": "SET home_directory = '{new}'",
    "reset": "RESET allowed_paths",
    "pragma": "PRAGMA database_list",
    "pragma-profile": "PRAGMA enable_profiling = 'json'",
    "call": "CALL pragma_version()",
    "call-logging": "CALL enable_logging(storage_path := '{new}')",
    "prepare": "PREPARE q AS COPY (SELECT 1) TO '{new}'",
    "execute": "EXECUTE q",
    "explain-analyze-execute": "EXPLAIN ANALYZE EXECUTE q",
    "begin": "BEGIN TRANSACTION",
    "checkpoint": "FORCE CHECKPOINT",
    "vacuum": "VACUUM",
    "two": "SELECT 1; COPY (SELECT 1) TO '{new}'",
    "none": "-- nothing",
    "query-function": "SELECT * FROM query('SELECT 1')",
    "query-function-copy": "FROM query('COPY (SELECT 1) TO ''{new}''')",
    "query-function-copy-in-a-cte": "FROM query('WITH x AS (COPY journal TO ''{new}'') SELECT * FROM x')",
    "query-table-function": "SELECT * FROM query_table('{other}')",
    "serialized": "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "logging": "FROM enable_logging('QueryLog', storage_path='{new}')",
    "profiling": "FROM enable_profiling(format='json', save_location='{new}')",
    "checkpoint-function": "FROM force_checkpoint()",
    "pointers": "SELECT * FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
    "read-text": "SELECT * FROM read_text('{other}')",
    "read-text-of-the-log": "SELECT * FROM read_text('{log}')",
    "read-text-in-a-predicate": "SELECT 1 FROM journal WHERE type IN (SELECT content FROM read_text('{other}'))",
    "read-csv": "SELECT * FROM read_csv('{other}')",
    "sniff-csv": "SELECT * FROM sniff_csv('{other}')",
    "a-file-as-a-table": "SELECT * FROM '{other}'",
    "a-folder-as-a-table": "SELECT * FROM '{folder}/*.parquet'",
    "glob": "SELECT * FROM glob('/*')",
    "qualified": "SELECT * FROM system.main.glob('/*')",
    "too-deep": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
}  # fmt: skip

# One of each kind, for surfaces in front of the same check.
SURFACES: Final = (
    "copy-in-place", "explain-analyze-copy", "copy-in-a-cte", "attach-in-place", "two", "none", "query-function",
    "read-text", "a-file-as-a-table", "too-deep",
)  # fmt: skip


def spelled(statement: str, table: Path) -> str:
    """A hostile statement about the lake whose journal table is in a folder."""
    return (
        statement.replace("{data}", str(min((table / "data").rglob("*.parquet"))))
        .replace("{log}", str(min((table / "_delta_log").glob("*.json"))))
        .replace("{new}", str(table / "data" / "forged.parquet"))
        .replace("{other}", str(table.parent.parent / "secret.csv"))
        .replace("{folder}", str(table.parent.parent))
    )


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its bytes, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }
