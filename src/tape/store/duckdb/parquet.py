"""Parquet files as the view `journal`, with other tables beside it, for SQL queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

import duckdb

from tape.core.errors import UsageError
from tape.store.duckdb.connection import translated
from tape.store.duckdb.select_only import NOT_ONE_SELECT, check_tree
from tape.store.ranges import arrow_schema
from tape.store.statements import statements

VIEW: Final = "journal"
CONFIG: Final = {"autoinstall_known_extensions": False, "python_enable_replacements": False}
NO_SPILLING: Final[dict[str, str | int]] = {"temp_directory": "", "max_temp_directory_size": "0B"}


class Answer(NamedTuple):
    """The rows of a result, and the names of its columns."""

    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class _Sql(NamedTuple):
    totals: str
    as_of: str
    syntax_tree: str
    allow_files: str
    refuse_the_rest: str
    keep_it_so: str


class Parquet:
    """Views of the files of a folder, up to a position if one is given, and of the tables made from them.

    It only reads; every call blocks.
    """

    def __init__(
        self,
        folder: Path,
        files: Sequence[str],
        through: int | None = None,
        views: Mapping[str, Sequence[Path]] | None = None,
        bounds: Mapping[str, str | int] | None = None,
    ) -> None:
        self._sql = _Sql(**statements("duckdb", "parquet.sql"))
        paths = [str(folder.absolute() / file) for file in files]
        tables = {name: [str(part.absolute()) for part in parts] for name, parts in (views or {}).items()}
        self._connection = duckdb.connect(":memory:", config={**CONFIG, **(bounds or {})})
        with translated():
            self._connection.execute(self._sql.allow_files, {"files": [*paths, *chain(*tables.values())]})
            self._connection.execute(self._sql.refuse_the_rest)
            rows = self._rows(paths)
            if through is not None:
                rows = rows.filter(duckdb.ColumnExpression("global_seq") <= duckdb.ConstantExpression(through))
            rows.create_view(VIEW)
            for name, parts in tables.items():
                self._connection.read_parquet(parts).create_view(name)
            self._connection.execute(self._sql.keep_it_so)

    def __enter__(self) -> Parquet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def totals(self) -> tuple[int, int, int]:
        """How many rows there are, how many positions, and the last one."""
        with translated():
            count, distinct, last = self._connection.execute(self._sql.totals).fetchall()[0]
        return count, distinct, last

    def as_of(self) -> Answer:
        """The counts of the files."""
        return self._ask(self._sql.as_of)

    def query(self, question: str, most: int | None = None) -> Answer:
        """The result of one SELECT, or its first rows; any other statement is refused, at any depth."""
        try:
            question.encode()
            return self._ask(self._select(question), most)
        except UnicodeEncodeError:
            raise UsageError("the query holds a lone surrogate, which is no text") from None
        except duckdb.Error as error:
            raise UsageError(f"the query cannot be answered: {' '.join(str(error).split())}") from error

    def _select(self, question: str) -> duckdb.Statement:
        """The checked statement, which runs as it is: the text is not parsed again."""
        asked = self._connection.extract_statements(question)
        if len(asked) != 1 or asked[0].type != duckdb.StatementType.SELECT:
            raise UsageError(NOT_ONE_SELECT)
        [(tree,)] = self._connection.execute(self._sql.syntax_tree, {"query": asked[0].query}).fetchall()
        check_tree(tree)
        return asked[0]

    def _ask(self, statement: str | duckdb.Statement, most: int | None = None) -> Answer:
        found = self._connection.execute(statement)
        rows = found.fetchall() if most is None else found.fetchmany(most)
        return Answer(tuple(column[0] for column in found.description or ()), rows)

    def _rows(self, paths: list[str]) -> duckdb.DuckDBPyRelation:
        if paths:
            return self._connection.read_parquet(paths)
        return self._connection.from_arrow(arrow_schema().empty_table())
