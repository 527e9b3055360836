"""The performance page, made from the last `make bench`: what was measured is what it says."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

LATEST = Path(__file__).resolve().parent.parent.parent / "bench" / "latest.json"


def pages() -> dict[str, str]:
    return {"performance.md": "\n".join(page(json.loads(LATEST.read_text(encoding="utf-8")))) + "\n"}


def page(measured: dict[str, Any]) -> Iterator[str]:
    yield from ("# Performance", "")
    yield (
        "Every row is ours beside a peer, measured in turns on the same machine; the ratio is what counts, since "
        "absolute figures are those of a small shared machine. A goal that is missed stands here as missed. "
        "`make bench` measures it all again."
    )
    yield from ("", "| condition | was |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in measured["conditions"].items())
    goals = [row for row in measured["rows"] if row["goal"]]
    yield from ("", f"{sum(row['met'] for row in goals)} of {len(goals)} goals are met.")
    for area, rows in groupby(measured["rows"], key=lambda row: row["area"]):
        yield from (
            "",
            f"## {area}",
            "",
            "| what | ours | peer | unit | ratio | goal | met |",
            "|---|--:|--:|---|--:|---|---|",
        )
        yield from map(line, rows)


def line(row: dict[str, Any]) -> str:
    met = {True: "yes", False: "**no**", None: ""}[row["met"]]
    peer = "" if row["peer"] is None else f"{row['peer']:,.6g}"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:,.3g}"
    return f"| {row['name']} | {row['ours']:,.6g} | {peer} | {row['unit']} | {ratio} | {row['goal'] or ''} | {met} |"
