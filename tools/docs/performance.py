"""The performance page, generated from the results of the last `make bench`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

LATEST = Path(__file__).resolve().parent.parent.parent / "bench" / "latest.json"
INTRODUCTION = (
    "Each row compares Tape with a peer, measured alternately on the same machine. Look at the ratio: the absolute "
    "figures are those of a small shared machine. The lowest and highest ratio of the repetitions are in brackets. "
    "A row without a goal is only observed. `make bench` measures all rows again; `make bench ONLY=name` measures one "
    "area and keeps the other rows."
)

Row = dict[str, Any]
Spreads = Mapping[str, Sequence[float]]


def pages() -> dict[str, str]:
    return {"performance.md": "\n".join(page(json.loads(LATEST.read_text(encoding="utf-8")))) + "\n"}


def page(measured: dict[str, Any]) -> Iterator[str]:
    rows = measured["rows"]
    yield from ("# Performance", "", INTRODUCTION, "", "| condition | was |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in measured["conditions"].items())
    yield from ("", *goals(rows))
    for area, some in groupby(rows, key=lambda row: row["area"]):
        yield from ("", f"## {area}", "")
        yield from ("| what | ours | peer | unit | ratio | goal | met |", "|---|--:|--:|---|--:|---|---|")
        yield from (line(row, measured["lowest and highest ratio"]) for row in some)


def goals(rows: Sequence[Row]) -> Iterator[str]:
    """The number of goals that are met, and the missed ones."""
    aimed = [row for row in rows if row["goal"]]
    missed = [row for row in aimed if not row["met"]]
    yield f"{len(aimed) - len(missed)} of {len(aimed)} goals are met{'; missed are:' if missed else '.'}"
    yield from ("",) if missed else ()
    for row in missed:
        yield f"- {row['area']}: {row['name']}: {row['ratio']:,.3g}, and should be {row['goal']}"


def line(row: Row, spreads: Spreads) -> str:
    met = {True: "yes", False: "**no**", None: ""}[row["met"]]
    peer = "" if row["peer"] is None else f"{row['peer']:,.6g}"
    spread = spreads.get(f"{row['area']}: {row['name']}")
    between = "" if spread is None else f" ({spread[0]:,.3g} to {spread[1]:,.3g})"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:,.3g}{between}"
    return f"| {row['name']} | {row['ours']:,.6g} | {peer} | {row['unit']} | {ratio} | {row['goal'] or ''} | {met} |"
