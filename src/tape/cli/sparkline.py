"""Numbers as one line of bars."""

from collections.abc import Sequence
from typing import Final

BARS: Final = " ▁▂▃▄▅▆▇█"
CELLS: Final = 60


def sparkline(numbers: Sequence[int], cells: int = CELLS) -> str:
    """A bar for each number, or for each group of neighbours; only zeros have no bar."""
    together = max(1, -(-len(numbers) // cells))
    sums = [sum(numbers[first : first + together]) for first in range(0, len(numbers), together)]
    most = max(sums, default=0) or 1
    return "".join(BARS[-(-number * (len(BARS) - 1) // most)] for number in sums)
