"""What matching a subject costs as patterns multiply."""

from collections.abc import Callable, Sequence
from statistics import median
from time import process_time

from tape.core.subject import Pattern
from tape.core.trie import Trie

TOOLS = 10
GOAL = 1.3


def measure(repetitions: int = 5) -> list[dict[str, object]]:
    """Rows of `bench/latest.json`; the sides of a ratio take turns, and a ratio is the median over the turns."""
    few, many = _hitting(), _hitting() + _missing(9_990)
    small, large, naive = _trie(few).match, _trie(many).match, _naive(many)
    subjects = _subjects(5_000)
    assert [len(large(subject)) for subject in subjects] == [len(small(subject)) for subject in subjects]
    turns = [(_cost(large, subjects), _cost(small, subjects), _cost(naive, subjects[:20])) for _ in range(repetitions)]
    rates = [(1e6 / ours, 1e6 / peer) for ours, _, peer in turns]
    return [
        _row("10,000 patterns against 10 at equal hits", "µs/subject", [turn[:2] for turn in turns], GOAL),
        _row("trie against naive at 10,000 patterns", "subjects/s", rates),
    ]


def _hitting() -> list[Pattern]:
    each = (f"/tape/effect/confirmed/tool-{tool}/*" for tool in range(7))
    return [Pattern.parse(text) for text in (*each, "/tape/effect/**", "/tape/*/confirmed/**", "/tape/run/*/**")]


def _missing(count: int) -> list[Pattern]:
    shapes = ("/tape/effect/confirmed/other-{}/*", "/tape/*/confirmed/other-{}/**", "/users/u-{}/**")
    return [Pattern.parse(shapes[number % len(shapes)].format(number)) for number in range(count)]


def _subjects(count: int) -> list[str]:
    return [f"/tape/effect/confirmed/tool-{number % TOOLS}/run-{number}" for number in range(count)]


def _trie(patterns: Sequence[Pattern]) -> Trie[int]:
    trie = Trie[int]()
    for number, pattern in enumerate(patterns):
        trie.add(pattern, number)
    return trie


def _naive(patterns: Sequence[Pattern]) -> Callable[[str], list[int]]:
    return lambda subject: [number for number, pattern in enumerate(patterns) if pattern.matches(subject)]


def _cost(match: Callable[[str], list[int]], subjects: Sequence[str]) -> float:
    """Microseconds of CPU time a subject."""
    started = process_time()
    for subject in subjects:
        match(subject)
    return (process_time() - started) / len(subjects) * 1e6


def _row(name: str, unit: str, turns: Sequence[tuple[float, float]], goal: float | None = None) -> dict[str, object]:
    ratios = [ours / peer for ours, peer in turns]
    ratio = median(ratios)
    return {
        "table": "parts",
        "area": "matching",
        "name": name,
        "ours": round(median(ours for ours, _ in turns), 2),
        "peer": round(median(peer for _, peer in turns), 2),
        "unit": unit,
        "ratio": round(ratio, 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "goal": goal and f"<= {goal}",
        "met": ratio <= goal if goal else None,
        "turns": len(turns),
    }
