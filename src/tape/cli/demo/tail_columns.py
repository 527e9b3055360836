"""Shows the entries of the demo as they arrive: one column per tail."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tape.cli import output
from tape.cli.demo.readers import payload_field
from tape.core.event import Entry

COLOURS: Final = ("cyan", "magenta", "yellow")
INTERVAL_S: Final = 0.1  # a reader cannot follow more lines


class TailColumns:
    """Prints each entry in its tail's column; if entries come too fast, it prints how many were skipped."""

    def __init__(self, titles: Sequence[str], *, is_quiet: bool) -> None:
        self._titles = titles
        self._is_quiet = is_quiet
        self._columns = output.columns() or output.PLAIN_COLUMNS
        self._last_s = [0.0] * len(titles)
        self._skipped = [0] * len(titles)

    def begin(self, headline: str) -> None:
        self._write(output.paint(headline, "bold"))
        self._write("")
        for column, title in enumerate(self._titles):
            self._write(self._in_column(column, f"tail {title}", "", "bold"))
        self._write("")

    def show(self, column: int, entry: Entry) -> None:
        now = time.monotonic()
        if now - self._last_s[column] < INTERVAL_S:
            self._skipped[column] += 1
            return
        between = f" +{self._skipped[column]:,}" if self._skipped[column] else ""
        text = f"{entry.global_seq:>5} {entry.type} {output.escape(str(payload_field(entry, 'text')))}"
        self._last_s[column], self._skipped[column] = now, 0
        self._write(self._in_column(column, text, between))

    def remark(self, text: str) -> None:
        """A remark between the entries."""
        self._write(output.paint(f"    — {text} —", "dim"))

    def _in_column(self, column: int, text: str, between: str, *styles: str) -> str:
        """Each column begins a little further to the right and uses the rest of the line."""
        offset = column * (self._columns // 5)
        fitted = output.fit(text, self._columns - offset - len(between))
        painted = output.paint(fitted, COLOURS[column % len(COLOURS)], *styles)
        return f"{' ' * offset}{painted}{output.paint(between, 'dim') if between else ''}"

    def _write(self, text: str) -> None:
        if not self._is_quiet:
            output.write(text)
            output.flush()
