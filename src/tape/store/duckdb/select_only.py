"""Checks that a query is one SELECT in which nothing writes, opens a file or runs other SQL, at any depth.

DuckDB calls a statement a SELECT that copies to a file in a CTE, so its type is not enough. Its syntax tree is
compared with what is known to be safe; whatever is not listed here is refused, as are kinds that later versions add.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from tape.core.errors import UsageError, quoted

QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
TABLES: Final = frozenset(
    {"BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION"}
)
CLAUSES: Final = frozenset(
    {"DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER"}
    | {"ASCENDING", "DESCENDING", "ORDER_DEFAULT"}
)
TABLE_FUNCTIONS: Final = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"}
    | {"duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_types", "duckdb_views", "pragma_table_info"}
)
NOT_ONE_SELECT: Final = "a query is one SELECT over the view journal and the tables"


def check_tree(serialized: str) -> None:
    """Refuses a query by its syntax tree, as json_serialize_sql gives it, unless every part of it is known."""
    try:
        tree = json.loads(serialized)
    except RecursionError as error:
        raise UsageError("the query is nested too deep") from error
    if tree["error"]:
        raise UsageError(f"{NOT_ONE_SELECT}: {tree['error_message']}")
    if len(tree["statements"]) != 1:
        raise UsageError(NOT_ONE_SELECT)
    for part in _parts(tree["statements"][0]):
        _check_part(part)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a tree that has a type and is no expression; expressions also have a class."""
    rest = [tree]
    while rest:
        part = rest.pop()
        if isinstance(part, list):
            rest += part
        elif isinstance(part, dict):
            rest += part.values()
            if isinstance(part.get("type"), str) and "class" not in part:
                yield part


def _check_part(part: dict[str, Any]) -> None:
    kind = part["type"]
    if kind == "TABLE_FUNCTION":
        name = part["function"].get("function_name")
        if name not in TABLE_FUNCTIONS:
            raise UsageError(f"a query may not call the table function {quoted(str(name))}")
    elif kind not in QUERIES | TABLES | CLAUSES and not kind.endswith("_TYPE_INFO"):
        raise UsageError(f"{NOT_ONE_SELECT}; it may not contain {kind.removesuffix('_NODE').replace('_', ' ')}")
