"""Several queries as one statement, so that one snapshot and one round trip serve them all."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from tape.store.connection import Row
from tape.store.postgres.named import numbered_names

_PARAMETER: Final = re.compile(r"\$(\d+)")

Shape: TypeAlias = tuple[str, int | None, int]


class Reading(NamedTuple):
    """One statement, the parameters that each query in it wants, and where in a row its answer is.

    A query whose width is known is so many columns, any other one a column with its rows as one array. Only the one
    with a budget, the page, has its rows as rows, behind all these: to put a page into an array and to take it out
    again costs more than to read it.
    """

    sql: str
    names: Sequence[Sequence[str]]
    widths: Sequence[int]
    page: int | None

    def apart(self, rows: Sequence[Row]) -> list[Sequence[Row]]:
        """The answer to each query."""
        first, at, found = rows[0], 0, list[Sequence[Row]]()
        for width in self.widths:
            found.append([first[at : at + width]] if width else first[at] or ())
            at += width or 1
        if self.page is not None:
            found.insert(self.page, [row[at:-1] for row in rows if row[-1] is not None])
        return found


@cache
def together(shapes: tuple[Shape, ...]) -> Reading:
    """Some queries, each its text, its budget and its width, as one statement."""
    columns: list[str] = []
    tables = ["(SELECT 1) AS one"]
    names: list[Sequence[str]] = []
    page, paged = None, ""
    for number, (sql, budget, width) in enumerate(shapes):
        text, own = numbered_names(sql)
        shifted = _shifted(text, sum(map(len, names)))
        names.append(own)
        if budget is not None:
            page, paged = number, _paged(shifted, budget)
        elif width:
            own_columns = [f"c{place}" for place in range(width)]
            tables.append(f"({shifted}) AS q{number} ({', '.join(own_columns)})")
            columns += [f"q{number}.{column}" for column in own_columns]
        else:
            columns.append(f"(SELECT array_agg(q) FROM ({shifted}) q)")  # noqa: S608 - the text of our own statements
    widths = [width for _, budget, width in shapes if budget is None]
    source = " CROSS JOIN ".join(tables)
    if page is None:
        return Reading(f"SELECT {', '.join(columns)} FROM {source}", names, widths, None)  # noqa: S608
    firsts = [f"CASE WHEN coalesce(p.before, 0) = 0 THEN {column} END" for column in columns]
    joined = f"SELECT {', '.join([*firsts, 'p.*'])} FROM {source} LEFT JOIN {paged} AS p ON true"  # noqa: S608
    return Reading(f"{joined} ORDER BY p.global_seq", names, widths, page)


def _paged(sql: str, budget: int) -> str:
    """As many of a query's rows as begin before their payloads have used up the budget."""
    size = "coalesce(octet_length(q.payload_json), octet_length(q.payload_bytes), 0)"
    weighed = f"SELECT q.*, sum({size}) OVER (ORDER BY q.global_seq) - {size} AS before FROM ({sql}) q"  # noqa: S608
    return f"(SELECT w.* FROM ({weighed}) w WHERE w.before < {budget})"  # noqa: S608


def _shifted(sql: str, by: int) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + by}", sql) if by else sql
