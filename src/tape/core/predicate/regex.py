"""How much work a regular expression is, once its counted repetitions are written out.

RE2 never backtracks, but where its automaton would grow too large it simulates every step for every byte of text.
"""

import re

_TOKEN = re.compile(
    r"\\[pP](?:\{\^?\w*\}|.)"
    r"|\\."
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"
    r"|\{(?P<least>\d+)(?P<open>,(?P<most>\d*))?\}"
    r"|.",
    re.DOTALL,
)
_STEPS = (
    (re.compile(r"\\Q"), 1_000),  # brackets between \Q and \E would be misread here, so no limit admits them
    (re.compile(r"\\[pP]"), 32),  # a Unicode class is hundreds of byte ranges
    (re.compile(r"^\.$|^\[\^|\\[DWSx]|\[:\^|[^\x00-\x7f]"), 4),  # every length that UTF-8 has
)


def weight(pattern: str) -> int:
    """The number of steps the pattern expands to: `(ab{3}){2}` has 8."""
    groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["least"]:
            times = max(int(token["least"]), int(token["most"] or 0))
            groups[-1] += last * (times - 1)
            last *= times
        elif token[0] == "(":
            groups.append(0)
        else:
            last = groups.pop() if token[0] == ")" and len(groups) > 1 else _steps(token[0])
            groups[-1] += last
    return sum(groups)


def _steps(token: str) -> int:
    return next((steps for kind, steps in _STEPS if kind.search(token)), 1)
