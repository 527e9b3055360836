"""Drawings of the five walks, as SVG that a browser shows in its own colours: `python -m tools.docs.drawings`."""

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"

ROOM_WIDTH, ROOM_HEIGHT, GAP, LANE, EDGE = 132, 46, 34, 84, 16

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
class Room:
    """A station of a walk; what is written there stays."""

    name: str
    about: str
    is_durable: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """Rooms in the order they are entered, in lanes; a lane begins with a hint from the one above it."""

    name: str
    title: str
    lanes: tuple[tuple[Room, ...], ...]
    hints: tuple[str, ...]


WALKS = (
    Walk(
        "walk-publish",
        "publish to live subscriber",
        (
            (
                Room("client", "HTTP, gRPC, Python"),
                Room("server", "checks the request"),
                Room("bus.append", "groups requests"),
                Room("store.append", "numbers, commits", True),
            ),
            (
                Room("bus.tail", "one ring a process"),
                Room("bus.stream", "replay, then live"),
                Room("wire.sse", "one frame for all"),
                Room("browser", "remembers its id"),
            ),
        ),
        ("wake",),
    ),
    Walk(
        "walk-reaction",
        "publish to handler",
        (
            (
                Room("journal", "an entry", True),
                Room("matcher", "trie, then CEL"),
                Room("tasks + cursor", "one transaction", True),
            ),
            (
                Room("work loop", "claims with a lease"),
                Room("handler", "your function"),
                Room("settle", "done, retry, dead", True),
            ),
        ),
        ("wake or poll",),
    ),
    Walk(
        "walk-outbox",
        "outbox row to handler, dead, replayed",
        (
            (Room("your transaction", "business rows"), Room("outbox row", "the same commit", True)),
            (
                Room("listener", "own generation"),
                Room("handled before?", "event_handled", True),
                Room("handler", "once in its effects"),
                Room("retry or dead", "a row a handler", True),
            ),
            (Room("tape outbox replay", "a person decides"), Room("pending", "with a new try", True)),
        ),
        ("notify or 5 s poll", "later"),
    ),
    Walk(
        "walk-lake",
        "journal to lake to cold reader",
        (
            (
                Room("journal", "a range of positions", True),
                Room("lake.source", "Arrow batches"),
                Room("lake.pipeline", "counts its rows"),
                Room("lake", "Delta: the only memory", True),
            ),
            (Room("lake.cold", "no Spark"), Room("bus.stream", "the same cursor"), Room("reader", "the same bytes")),
        ),
        ("older than the floor",),
    ),
    Walk(
        "walk-reconnect",
        "a browser comes back",
        (
            (
                Room("browser", "Last-Event-ID: 41"),
                Room("server", "epoch the same?"),
                Room("bus.stream", "starts at 42"),
            ),
            (
                Room("lake", "if that old", True),
                Room("journal", "then", True),
                Room("tail", "then"),
                Room("live", "and on"),
            ),
        ),
        ("each once, in order",),
    ),
)


def draw(walk: Walk) -> str:
    """A walk as a picture."""
    width = 2 * EDGE + max(map(len, walk.lanes)) * (ROOM_WIDTH + GAP) - GAP
    height = 2 * EDGE + len(walk.lanes) * LANE - (LANE - ROOM_HEIGHT)
    body = "".join(_lane(number, rooms) for number, rooms in enumerate(walk.lanes))
    body += "".join(_hint(walk, number) for number in range(1, len(walk.lanes)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" width="{width}">'
        f"<title>{escape(walk.title)}</title><style>{STYLE}</style><defs>{HEAD}</defs>{body}</svg>\n"
    )


def _lane(number: int, rooms: tuple[Room, ...]) -> str:
    return "".join(_room(room, place, _top(number)) for place, room in enumerate(rooms)) + "".join(
        f'<path d="M{_left(place) + ROOM_WIDTH} {_top(number) + ROOM_HEIGHT // 2}h{GAP - 1}"/>'
        for place in range(len(rooms) - 1)
    )


def _room(room: Room, place: int, top: int) -> str:
    middle = _left(place) + ROOM_WIDTH // 2
    kind = ' class="durable"' if room.is_durable else ""
    return (
        f'<g{kind}><rect x="{_left(place)}" y="{top}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="6"/>'
        f'<text x="{middle}" y="{top + 20}">{escape(room.name)}</text>'
        f'<text class="about" x="{middle}" y="{top + 35}">{escape(room.about)}</text></g>'
    )


def _hint(walk: Walk, number: int) -> str:
    """The way from the end of one lane to the beginning of the next."""
    above, below = _top(number - 1) + ROOM_HEIGHT, _top(number)
    start = _left(len(walk.lanes[number - 1]) - 1) + ROOM_WIDTH // 2
    end, middle = _left(0) + ROOM_WIDTH // 2, (above + below) // 2
    text = walk.hints[number - 1]
    return (
        f'<g class="hint"><path d="M{start} {above}V{middle}H{end}V{below - 1}"/>'
        f'<text class="about" x="{(start + end) // 2}" y="{middle - 4}">{escape(text)}</text></g>'
    )


def _left(place: int) -> int:
    return EDGE + place * (ROOM_WIDTH + GAP)


def _top(lane: int) -> int:
    return EDGE + lane * LANE


def main() -> int:
    for walk in WALKS:
        (FOLDER / f"{walk.name}.svg").write_text(draw(walk), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
