"""Rows as `make bench` prints and keeps them."""

from collections.abc import Iterator, Sequence

from tests.bench.compare import Row

WIDTHS = (10, 10, -16, 7, -14, -8, -6)


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """The rows of before with those of now in their places; every row has its own conditions."""
    rows = {(row["table"], row["area"], row["name"]): row for row in (*before, *now)}
    return list(rows.values())


def heading() -> str:
    return _columns("", "ours", "peer", "", "ratio", "spread", "goal", "")


def line(row: Row) -> str:
    spread = row["spread"]
    between = f"[{spread[0]:g}–{spread[1]:g}]" if isinstance(spread, list) else ""
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"] if isinstance(row["met"], bool) else None]
    figures = f"{row['ours']:,.6g}", f"{row['peer']:,.6g}", row["unit"], row["ratio"], between
    return _columns(f"{row['area']}: {row['name']}", *figures, row["goal"] or "", verdict)


def _columns(name: str, *rest: object) -> str:
    cells = (
        f"{cell!s:>{width}}" if width > 0 else f"{cell!s:<{-width}}" for cell, width in zip(rest, WIDTHS, strict=True)
    )
    return f"{name:<82} {' '.join(cells)}".rstrip()


def missed(rows: Sequence[Row]) -> Iterator[str]:
    """What was promised and not measured this time; a machine that is busy with something else is a usual reason."""
    judged = [row for row in rows if row["goal"] is not None]
    yield f"{sum(row['met'] is True for row in judged)} of {len(judged)} goals met"
    for row in judged:
        if row["met"] is not True:
            yield f"missed: {row['area']}: {row['name']}: {row['ratio']}, and the goal is {row['goal']}"
