"""What the demo shows as it flows: a lane for each tail, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tape.cli import output
from tape.cli.demo.readers import payload_field
from tape.core.event import Entry

COLOURS: Final = ("cyan", "magenta", "yellow")
INTERVAL_S: Final = 0.1  # more lines than that nobody can read


class Lanes:
    """Prints each entry in its tail's lane; where they come too fast to be read, how many there were between."""

    def __init__(self, titles: Sequence[str], *, is_quiet: bool) -> None:
        self._titles = titles
        self._is_quiet = is_quiet
        self._columns = output.columns() or output.PLAIN_COLUMNS
        self._last_s = [0.0] * len(titles)
        self._skipped = [0] * len(titles)

    def begin(self, headline: str) -> None:
        self._write(output.paint(headline, "bold"))
        self._write("")
        for lane, title in enumerate(self._titles):
            self._write(self._in_lane(lane, f"tail {title}", "", "bold"))
        self._write("")

    def show(self, lane: int, entry: Entry) -> None:
        now = time.monotonic()
        if now - self._last_s[lane] < INTERVAL_S:
            self._skipped[lane] += 1
            return
        between = f" +{self._skipped[lane]:,}" if self._skipped[lane] else ""
        text = f"{entry.global_seq:>5} {entry.type} {output.escape(str(payload_field(entry, 'text')))}"
        self._last_s[lane], self._skipped[lane] = now, 0
        self._write(self._in_lane(lane, text, between))

    def remark(self, text: str) -> None:
        """A word between the lines."""
        self._write(output.paint(f"    — {text} —", "dim"))

    def _in_lane(self, lane: int, text: str, between: str, *styles: str) -> str:
        """A lane begins a little to the right of the one before and has the rest of the line."""
        offset = lane * (self._columns // 5)
        fitted = output.fit(text, self._columns - offset - len(between))
        painted = output.paint(fitted, COLOURS[lane % len(COLOURS)], *styles)
        return f"{' ' * offset}{painted}{output.paint(between, 'dim') if between else ''}"

    def _write(self, text: str) -> None:
        if not self._is_quiet:
            output.write(text)
            output.flush()
