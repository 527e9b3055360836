"""Draws a plot as SVG, whose colours the page chooses for light and dark, and as PNG."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDE: Final = 10.8
HALF: Final = 5.25
DPI: Final = 200
TINTS: Final = 12
MOST_LETTERS: Final = 22
FAMILY: Final = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif'

# The colours of the console. Plots are drawn in the light ones; a page replaces them by name.
LIGHT: Final[Mapping[str, str]] = {
    "card": "#fffefb", "line": "#e4e1d8", "strong": "#1f2a2c", "text": "#36413f", "quiet": "#6a7370",
    "faint": "#d9d6cc", "accent": "#1f6673", "good": "#2c8a5b", "busy": "#a86a10", "bad": "#b5432f",
    "type-0": "#3b6fb6", "type-1": "#2f8f83", "type-2": "#b8662a", "type-3": "#7d5bb0", "type-4": "#b64a6a",
    "type-5": "#5f8a2c", "type-6": "#a3842a", "type-7": "#4a7f99", "type-8": "#99527e", "type-9": "#6d7a2b",
    "type-10": "#8a6350", "type-11": "#5a62a8",
}  # fmt: skip
DARK: Final[Mapping[str, str]] = {
    "card": "#1c2022", "line": "#2d3336", "strong": "#e9ecea", "text": "#c9cfcc", "quiet": "#8d9794",
    "faint": "#343b3e", "accent": "#6fb9c4", "good": "#5fc08d", "busy": "#dda34b", "bad": "#ec8470",
    "type-0": "#7fa9e6", "type-1": "#5fc2b4", "type-2": "#e39a62", "type-3": "#b195e2", "type-4": "#e88aa6",
    "type-5": "#9cc463", "type-6": "#d8bb5e", "type-7": "#86bdd8", "type-8": "#d890bd", "type-9": "#b0bd63",
    "type-10": "#c79c86", "type-11": "#9aa2e8",
}  # fmt: skip
_NAMES: Final = {colour: name for name, colour in LIGHT.items()}

STYLE: Final[dict[Any, Any]] = {
    "axes.edgecolor": LIGHT["line"], "axes.facecolor": LIGHT["card"], "axes.labelcolor": LIGHT["quiet"],
    "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False, "axes.axisbelow": True,
    "axes.labelsize": 8.5, "axes.titlecolor": LIGHT["strong"], "axes.titlesize": 9.5, "axes.titleweight": "bold",
    "figure.facecolor": LIGHT["card"], "font.family": "DejaVu Sans", "font.size": 8.5, "grid.color": LIGHT["line"],
    "grid.linewidth": 0.8, "svg.fonttype": "none", "text.color": LIGHT["text"], "text.parse_math": False,
    "xtick.color": LIGHT["line"], "xtick.labelcolor": LIGHT["quiet"], "xtick.major.size": 0,
    "ytick.color": LIGHT["line"], "ytick.labelcolor": LIGHT["text"], "ytick.major.size": 0,
}  # fmt: skip

Draw: TypeAlias = Callable[["Canvas"], None]

_drop_ids = re.compile(r'<g id="[^"]*"').sub  # ids of paths are referenced
_find_colour = re.compile(r"\b(fill|stroke|stop-color): (#[0-9a-f]{6})\b")
_find_family = re.compile(r"'DejaVu Sans'[^;\"]*")


class Plot(NamedTuple):
    """A plot: its size, how to draw it, and a text that describes it for screen readers."""

    name: str
    title: str
    about: str
    size: tuple[float, float]
    draw: Draw


class Canvas:
    """A figure to draw on, with tooltips of its marks."""

    def __init__(self, name: str, size: tuple[float, float]) -> None:
        self.name = name
        self.figure = Figure(size, layout="constrained")
        self.tooltips: dict[str, str] = {}

    def axes(self, columns: int = 1, rows: int = 1, **options: Any) -> list[Axes]:
        return list(self.figure.subplots(rows, columns, squeeze=False, **options).flat)

    def add_tooltip(self, marks: Sequence[Artist], text: str) -> None:
        for mark in marks:
            identity = f"{self.name}-{len(self.tooltips)}"
            mark.set_gid(identity)
            self.tooltips[identity] = text


def label(axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
    """A label to the right of a mark."""
    look = {"va": "center", "color": LIGHT["quiet"], **options}
    axes.annotate(text, (x, y), (5, 0), textcoords="offset points", annotation_clip=False, **look)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Puts the names of rows on the left, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def short(name: str) -> str:
    """Shortens a name to fit beside a plot."""
    return name if len(name) <= MOST_LETTERS else f"{name[:12]}…{name[-8:]}"


def tint(number: int) -> str:
    """The colour of the n-th item."""
    return LIGHT[f"type-{number % TINTS}"]


def svg(plot: Plot) -> str:
    """Draws the plot as an SVG element with named colours and no external references."""
    text = StringIO()
    with _drawn(plot) as canvas, mpl.rc_context({"svg.hashsalt": plot.name}):
        canvas.figure.savefig(
            text, format="svg", transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    found = text.getvalue()
    return _for_page(found[found.index("<svg") :], plot, canvas.tooltips)


def png(plot: Plot) -> bytes:
    picture = BytesIO()
    with _drawn(plot) as canvas:
        canvas.figure.savefig(picture, format="png", dpi=DPI)
    return picture.getvalue()


def write_png(plot: Plot, folder: Path) -> Path:
    path = folder / f"{plot.name}.png"
    path.write_bytes(png(plot))
    return path


@contextmanager
def _drawn(plot: Plot) -> Iterator[Canvas]:
    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # browsers have fallback fonts
        canvas = Canvas(plot.name, plot.size)
        plot.draw(canvas)
        yield canvas


def _for_page(text: str, plot: Plot, tooltips: Mapping[str, str]) -> str:
    for identity, text_of in tooltips.items():
        text = text.replace(f'<g id="{identity}">', f"<g><title>{escape(text_of)}</title>")
    text = _drop_ids("<g", text)
    text = _find_colour.sub(_named, text)
    text = _find_family.sub(FAMILY.replace('"', "'"), text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(plot.about)}" ', 1)


def _named(found: re.Match[str]) -> str:
    name = _NAMES.get(found[2])
    return f"{found[1]}: var(--{name})" if name else found[0]
