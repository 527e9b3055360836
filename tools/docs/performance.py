"""The performance page, generated from the results of the last `make bench`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LATEST = Path(__file__).resolve().parent.parent.parent / "bench" / "latest.json"
INTRODUCTION = (
    "Each row compares Tape with a peer, measured alternately on the same machine. Look at the ratio: the absolute "
    "figures are those of a small shared machine. A ratio is the median of the turns; the lowest and the highest are "
    "in brackets. `make bench` measures all rows again, users' paths first. `make bench ONLY=name` measures the rows "
    "whose table, area or name contains it and keeps the others, each with its own conditions. "
    "`make bench SIZE=0.05` only tries whether everything works and saves nothing."
)
USERS = (
    "What a user gets: each side is run as its documentation says, server, worker and publisher in processes of their "
    "own, ours with all defaults, a peer with the settings that its documentation recommends and warmed up like ours. "
    "Redis and JetStream sync before they acknowledge, as both of our stores do. No goal is set here."
)
PARTS = (
    "Parts of Tape against the least that their work can cost, or against themselves at another size. They show what a "
    "change of the code does, and a user gets none of these figures: a side may have its requests prepared, share the "
    "process of its publisher, or leave out what a whole path needs."
)
NONE = "Not measured yet."

Row = dict[str, Any]


def pages() -> dict[str, str]:
    return {"performance.md": "\n".join(page(json.loads(LATEST.read_text(encoding="utf-8")))) + "\n"}


def page(measured: dict[str, Any]) -> Iterator[str]:
    users = [row for row in measured["rows"] if row["table"] == "users"]
    parts = [row for row in measured["rows"] if row["table"] == "parts"]
    yield from ("# Performance", "", INTRODUCTION, "", "## Users' paths", "", USERS, "")
    yield from (line for rows in by_area(users) for line in users_area(rows))
    yield from () if users else (NONE, "")
    yield from ("## Parts", "", PARTS, "", *goals(parts), "")
    yield from (line for rows in by_area(parts) for line in parts_area(rows))


def by_area(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows of each area, also of one that was measured in parts."""
    areas: dict[str, list[Row]] = {}
    for row in rows:
        areas.setdefault(row["area"], []).append(row)
    yield from areas.values()


def users_area(rows: Sequence[Row]) -> Iterator[str]:
    yield from (f"### {rows[0]['area']}", "", "| what | ours | peer | unit | ratio |", "|---|--:|--:|---|--:|")
    yield from (f"| {row['name']} | {figures(row)} |" for row in rows)
    yield from ("", *conditions(rows), "", "How the sides were run:", "")
    yield from (f"- {text}" for text in dict.fromkeys(row[side] for row in rows for side in ("ours is", "peer is")))
    yield ""


def parts_area(rows: Sequence[Row]) -> Iterator[str]:
    yield from (f"### {rows[0]['area']}", "")
    yield from ("| what | ours | peer | unit | ratio | goal | met |", "|---|--:|--:|---|--:|---|---|")
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        yield f"| {row['name']} | {figures(row)} | {row['goal'] or ''} | {met} |"
    yield from ("", *conditions(rows), "")


def figures(row: Row) -> str:
    spread = row["spread"]
    between = "" if spread is None else f" ({spread[0]:,.3g} to {spread[1]:,.3g})"
    return f"{row['ours']:,.6g} | {row['peer']:,.6g} | {row['unit']} | {row['ratio']:,.3g}{between}"


def conditions(rows: Sequence[Row]) -> Iterator[str]:
    """A sentence for each set of conditions in which some of the rows were measured."""
    said = dict.fromkeys(", ".join(f"{name} {value}" for name, value in row["conditions"].items()) for row in rows)
    yield from (f"Conditions: {text}." for text in said)


def goals(rows: Sequence[Row]) -> Iterator[str]:
    """The number of goals that are met, and the missed ones."""
    aimed = [row for row in rows if row["goal"]]
    missed = [row for row in aimed if not row["met"]]
    yield f"{len(aimed) - len(missed)} of {len(aimed)} goals are met{'; missed are:' if missed else '.'}"
    yield from ("",) if missed else ()
    for row in missed:
        yield f"- {row['area']}: {row['name']}: {row['ratio']:,.3g}, and should be {row['goal']}"
