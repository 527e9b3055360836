"""The output of the command line: width, colour, and escaping of text from outside."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Final, TextIO

PLAIN_COLUMNS: Final = 100
MIN_LAST_COLUMN: Final = 20  # the minimum width of a table's last column
_CODES: Final = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip
_CLEAR_LINE: Final = "\r\x1b[2K"

# Invisible characters that Unicode counts as printable.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_ESCAPES: Final = re.compile("\x1b\\[[0-9;]*m")


def write(text: str = "") -> None:
    """Writes a line to stdout. The caller escapes text from outside."""
    _progress.clear()
    sys.stdout.write(text + "\n")


def write_json(value: object) -> None:
    """Writes one line of JSON in which invisible characters are escaped."""
    write(_json(value))


def write_record(record: object) -> None:
    """Writes a value of the library as one line of JSON."""
    from tape.wire.result_json import plain

    write_json(plain(record))


def note_json(value: object) -> None:
    """Writes a line of JSON to stderr."""
    _progress.clear()
    sys.stderr.write(_json(value) + "\n")


def note(text: str) -> None:
    """Writes a line to stderr."""
    _progress.clear()
    sys.stderr.write(f"tape: {text}\n")


def progress(text: str) -> None:
    """Shows progress on a terminal until the next line is written."""
    if is_terminal(sys.stderr):
        _progress.show(text)


def flush() -> None:
    """Flushes stdout."""
    _progress.clear()
    sys.stdout.flush()


def escape(text: str) -> str:
    """The text with visible escapes for control, bidi and zero-width characters."""
    if _is_visible(text):
        return text
    return "".join(char if _is_visible(char) else f"\\u{{{ord(char):x}}}" for char in text)


def paint(text: str, *styles: str) -> str:
    """The text in colour, if the terminal shows colours."""
    if not styles or not has_colour():
        return text
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def has_colour() -> bool:
    """Whether to use colours."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty()


def columns() -> int | None:
    """The terminal's width; None if the output is not a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or PLAIN_COLUMNS if is_terminal() else None
    except (OSError, ValueError):
        return PLAIN_COLUMNS


def width(text: str) -> int:
    """How many terminal cells a text takes, without its colour codes."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(map(_cells, _ESCAPES.sub("", text)))


def fit(text: str, cells: int | None) -> str:
    """The text shortened to a number of cells, with an ellipsis."""
    if cells is None or width(text) <= cells:
        return text
    kept, left = [], cells - 1
    for char in text:
        left -= _cells(char)
        if left < 0:
            break
        kept.append(char)
    return "".join(kept) + "…" if cells > 0 else ""


def count(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def pad(text: str, cells: int) -> str:
    """The text padded to a number of cells; a negative number aligns it right."""
    blanks = " " * max(abs(cells) - width(text), 0)
    return text + blanks if cells >= 0 else blanks + text


def table(rows: Iterable[Sequence[str]]) -> None:
    """Prints rows in columns; the last column wraps at the end of the terminal."""
    cells = [list(row) for row in rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    available = columns()
    if available is not None and indent + MIN_LAST_COLUMN > available:
        for row in cells:
            _write_folded(row, available)
        return
    for *row, last in cells:
        before = "".join(pad(cell, size) + "  " for cell, size in zip(row, widths, strict=True))
        first, *rest = _wrapped(last, indent)
        write(f"{before}{first}".rstrip())
        for line in rest:
            write(f"{' ' * indent}{line}")


def listing(rows: Iterable[Sequence[str]], none: str) -> None:
    """Prints rows in columns; on a terminal, a note if there are none."""
    found = list(rows)
    if found:
        table(found)
    elif is_terminal():
        note(none)


def _write_folded(row: Sequence[str], available: int) -> None:
    """Prints a row on several lines; cells are never cut, so that ids can be copied."""
    line = ""
    for cell in filter(None, row):
        if line.strip() and width(line) + 2 + width(cell) > available:
            write(line)
            line = ""
        line = f"{line}  {cell}" if line else cell
    for part in _folded(line, available):
        write(part)


def _folded(text: str, available: int) -> list[str]:
    return [text] if width(text) <= available else wrap(text, available, subsequent_indent="  ", break_long_words=False)


def _wrapped(text: str, indent: int) -> list[str]:
    available = columns()
    if available is None or indent + width(text) <= available:
        return [text]
    return wrap(text, max(available - indent, MIN_LAST_COLUMN)) or [""]


class _Progress:
    """The progress line, which is overwritten."""

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, text: str) -> None:
        sys.stderr.write(_CLEAR_LINE + fit(text, PLAIN_COLUMNS - 1))
        sys.stderr.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._is_shown = False


_progress: Final = _Progress()


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _is_visible(text):
        return text
    return "".join(char if _is_visible(char) else json.dumps(char)[1:-1] for char in text)


def _is_visible(text: str) -> bool:
    return text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
