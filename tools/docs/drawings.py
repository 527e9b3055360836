"""Drawings of the five request paths as SVG for light and dark browsers: `python -m tools.docs.drawings`."""

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"

BOX_WIDTH, BOX_HEIGHT, GAP, ROW, EDGE = 132, 46, 34, 84, 16

STYLE = (
    ":root{color-scheme:light dark}"
    "rect{fill:light-dark(#f5f5f2,#1f2228);stroke:light-dark(#7c818a,#8a8f99)}"
    ".durable rect{fill:light-dark(#dcebfa,#173a5c)}"
    "text{font:12px system-ui,sans-serif;fill:light-dark(#1b1d21,#e6e6e3);text-anchor:middle}"
    ".about{font-size:10.5px;fill:light-dark(#5b606a,#a9aeb8)}"
    "path{fill:none;stroke:light-dark(#5b606a,#a9aeb8);marker-end:url(#head)}.hint path{stroke-dasharray:4 3}"
    "#head path{fill:light-dark(#5b606a,#a9aeb8);stroke:none;marker-end:none}"
)

HEAD = (
    '<marker id="head" orient="auto" markerWidth="8" markerHeight="8" refX="7" refY="4">'
    '<path d="M0 0L8 4L0 8z"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Step:
    """One box of a drawing; a durable step stores something."""

    name: str
    about: str
    is_durable: bool = False


@dataclass(frozen=True, slots=True)
class RequestPath:
    """Steps in rows, in order; a dashed hint leads from the end of a row to the next row."""

    name: str
    title: str
    rows: tuple[tuple[Step, ...], ...]
    hints: tuple[str, ...]


REQUEST_PATHS = (
    RequestPath(
        "request-path-publish",
        "publish to live subscriber",
        (
            (
                Step("client", "HTTP, gRPC, Python"),
                Step("server", "validates"),
                Step("bus.append", "groups requests"),
                Step("store.append", "numbers, commits", True),
            ),
            (
                Step("bus.tail", "one ring per process"),
                Step("bus.stream", "replay, then live"),
                Step("wire.sse", "one frame for all"),
                Step("browser", "keeps the last id"),
            ),
        ),
        ("wake",),
    ),
    RequestPath(
        "request-path-reaction",
        "publish to handler",
        (
            (
                Step("journal", "an entry", True),
                Step("matcher", "trie, then CEL"),
                Step("tasks + cursor", "one transaction", True),
            ),
            (
                Step("worker", "claims with a lease"),
                Step("handler", "your function"),
                Step("settle", "done, retry, dead", True),
            ),
        ),
        ("wake or poll",),
    ),
    RequestPath(
        "request-path-outbox",
        "outbox row to handler, dead, replayed",
        (
            (Step("your transaction", "business rows"), Step("outbox row", "the same commit", True)),
            (
                Step("listener", "own generation"),
                Step("handled before?", "event_handled", True),
                Step("handler", "effects apply once"),
                Step("retry or dead", "one row per handler", True),
            ),
            (Step("tape outbox replay", "an operator decides"), Step("pending", "attempts start at 0", True)),
        ),
        ("notify or 5 s poll", "later"),
    ),
    RequestPath(
        "request-path-lake",
        "journal to lake to cold reader",
        (
            (
                Step("journal", "a range of positions", True),
                Step("lake.source", "Arrow batches"),
                Step("lake.pipeline", "counts its rows"),
                Step("lake", "Delta log: progress", True),
            ),
            (Step("lake.cold", "no Spark"), Step("bus.stream", "the same cursor"), Step("reader", "the same bytes")),
        ),
        ("older than the floor",),
    ),
    RequestPath(
        "request-path-reconnect",
        "browser reconnects",
        (
            (
                Step("browser", "Last-Event-ID: 41"),
                Step("server", "same epoch?"),
                Step("bus.stream", "starts at 42"),
            ),
            (
                Step("lake", "oldest entries", True),
                Step("journal", "then this", True),
                Step("tail", "newest in memory"),
                Step("live", "then follow"),
            ),
        ),
        ("each once, in order",),
    ),
)


def draw(path: RequestPath) -> str:
    """The SVG of a request path."""
    width = 2 * EDGE + max(map(len, path.rows)) * (BOX_WIDTH + GAP) - GAP
    height = 2 * EDGE + len(path.rows) * ROW - (ROW - BOX_HEIGHT)
    body = "".join(_row(number, steps) for number, steps in enumerate(path.rows))
    body += "".join(_hint(path, number) for number in range(1, len(path.rows)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" width="{width}">'
        f"<title>{escape(path.title)}</title><style>{STYLE}</style><defs>{HEAD}</defs>{body}</svg>\n"
    )


def _row(number: int, steps: tuple[Step, ...]) -> str:
    return "".join(_box(step, place, _top(number)) for place, step in enumerate(steps)) + "".join(
        f'<path d="M{_left(place) + BOX_WIDTH} {_top(number) + BOX_HEIGHT // 2}h{GAP - 1}"/>'
        for place in range(len(steps) - 1)
    )


def _box(step: Step, place: int, top: int) -> str:
    middle = _left(place) + BOX_WIDTH // 2
    kind = ' class="durable"' if step.is_durable else ""
    return (
        f'<g{kind}><rect x="{_left(place)}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{middle}" y="{top + 20}">{escape(step.name)}</text>'
        f'<text class="about" x="{middle}" y="{top + 35}">{escape(step.about)}</text></g>'
    )


def _hint(path: RequestPath, number: int) -> str:
    """The dashed line from the end of one row to the beginning of the next."""
    above, below = _top(number - 1) + BOX_HEIGHT, _top(number)
    start = _left(len(path.rows[number - 1]) - 1) + BOX_WIDTH // 2
    end, middle = _left(0) + BOX_WIDTH // 2, (above + below) // 2
    text = path.hints[number - 1]
    return (
        f'<g class="hint"><path d="M{start} {above}V{middle}H{end}V{below - 1}"/>'
        f'<text class="about" x="{(start + end) // 2}" y="{middle - 4}">{escape(text)}</text></g>'
    )


def _left(place: int) -> int:
    return EDGE + place * (BOX_WIDTH + GAP)


def _top(row: int) -> int:
    return EDGE + row * ROW


def main() -> int:
    for path in REQUEST_PATHS:
        (FOLDER / f"{path.name}.svg").write_text(draw(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
