"""A model of appends per second: two measurements give its constants, a third checks them, a simulation extends it."""

import heapq
import json
import sys
from pathlib import Path
from typing import NamedTuple


class Point(NamedTuple):
    """A measurement: requests per group, and appends per second."""

    group: int
    per_second: float


class Journal(NamedTuple):
    """The seconds that a commit takes, and each request in it."""

    commit: float
    each: float

    def per_second(self, group: int) -> float:
        return group / (self.commit + group * self.each)


# The size of the group and the row of the benchmark; the model must predict the last one of each area.
POINTS = {
    "sqlite": (
        (16, "16 async publishers, events made"),
        (64, "64 async publishers, events made"),
        (1, "1 async publisher, events made"),
    ),
    "postgres": (
        (100, "append of 100 against COPY of 100"),
        (1000, "append of 1,000 against one indexed COPY"),
        (16, "16 publishers against 16 connections without NOTIFY"),
    ),
}


def fitted(one: Point, other: Point) -> Journal:
    """The constants that fit both points."""
    first, second = one.group / one.per_second, other.group / other.per_second
    each = (second - first) / (other.group - one.group)
    return Journal(commit=max(first - one.group * each, 0.0), each=each)


def measured(rows: list[dict[str, object]], area: str) -> list[Point]:
    found = {row["name"]: float(str(row["ours"])) for row in rows if row["area"] == area}
    return [Point(group, found[name]) for group, name in POINTS[area]]


def simulated(journal: Journal, journals: int, publishers: int, seconds: float = 2.0) -> float:
    """Appends per second if each publisher waits for its answer before the next append."""
    waiting = [publishers // journals + (number < publishers % journals) for number in range(journals)]
    ends = [(journal.commit + count * journal.each, number) for number, count in enumerate(waiting) if count]
    heapq.heapify(ends)
    done = 0
    while ends and ends[0][0] <= seconds:
        end, number = heapq.heappop(ends)
        done += waiting[number]  # all of them get their answers and append again
        heapq.heappush(ends, (end + journal.commit + waiting[number] * journal.each, number))
    return done / seconds


def main(path: str) -> None:
    rows = json.loads(Path(path).read_text())["rows"]
    for area in POINTS:
        one, other, held_back = measured(rows, area)
        journal = fitted(one, other)
        print(f"{area:9} a commit takes {journal.commit * 1e3:.2f} ms, a request {journal.each * 1e6:.0f} µs more")
        for point, word in ((one, "fitted"), (other, "fitted"), (held_back, "predicted")):
            predicted = journal.per_second(point.group)
            print(f"{'':9} {point.group:5} per group: {point.per_second:8,.0f}/s measured, {predicted:8,.0f}/s {word}")
    print("journals  publishers  appended/s")
    postgres = fitted(*measured(rows, "postgres")[:2])
    for journals in (1, 2, 4):
        for publishers in (16, 64, 256, 1024):
            print(f"{journals:8}  {publishers:10}  {simulated(postgres, journals, publishers):10,.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
