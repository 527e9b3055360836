"""Several queries as one statement: one snapshot and one round trip for all of them."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from tape.store.connection import Row
from tape.store.postgres.named import numbered_names


class CombinedQuery(NamedTuple):
    """One statement, and the names of the parameters of each query in it.

    A query is a column that holds its rows as an array. Only the query with a byte budget, the page, has its rows as
    rows of the answer, after these columns: to pack a page into an array costs more than to read it.
    """

    sql: str
    names: Sequence[Sequence[str]]
    page: int | None

    def split(self, rows: Sequence[Row]) -> list[Sequence[Row]]:
        """The answer to each query."""
        columns = len(self.names) if self.page is None else len(self.names) - 1
        answers: list[Sequence[Row]] = [found or () for found in rows[0][:columns]]
        if self.page is not None:
            answers.insert(self.page, [row[columns:-1] for row in rows if row[-1] is not None])
        return answers


@cache
def combined(queries: tuple[tuple[str, int | None], ...]) -> CombinedQuery:
    """Combines queries, each given by its text and its budget."""
    columns: list[str] = []
    names: list[Sequence[str]] = []
    page, page_sql = None, ""
    for number, (sql, budget) in enumerate(queries):
        text, own = numbered_names(sql, before=sum(map(len, names)))
        names.append(own)
        if budget is None:
            columns.append(f"(SELECT array_agg(q) FROM ({text}) q)")  # noqa: S608 - the text of our own statements
        else:
            page, page_sql = number, _within_budget(text, budget)
    if page is None:
        return CombinedQuery(f"SELECT {', '.join(columns)}", names, None)
    first_row_only = [f"CASE WHEN coalesce(p.before, 0) = 0 THEN {column} END" for column in columns]
    selected = ", ".join([*first_row_only, "p.*"])
    source = f"(SELECT 1) AS one LEFT JOIN {page_sql} AS p ON true ORDER BY p.global_seq"
    return CombinedQuery(f"SELECT {selected} FROM {source}", names, page)  # noqa: S608


def _within_budget(sql: str, budget: int) -> str:
    """The rows of a query that begin before their payloads have used up the budget."""
    size = "coalesce(octet_length(q.payload_json), octet_length(q.payload_bytes), 0)"
    weighed = f"SELECT q.*, sum({size}) OVER (ORDER BY q.global_seq) - {size} AS before FROM ({sql}) q"  # noqa: S608
    return f"(SELECT w.* FROM ({weighed}) w WHERE w.before < {budget})"  # noqa: S608
