"""Translates RE2 patterns to Java, if Java gives the same result in linear time.

Java's engine backtracks: it is linear in the text, as RE2 always is, only for a pattern with at most one repetition of
variable length.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tape.lake.sql.types import NotCompiled

MOST_REPEATS: Final = 64

_PUNCTUATION: Final = r"[!-/:-@\[-`{-~]"
_SPAN: Final = "[A-Za-z0-9]-[A-Za-z0-9]"
_MEMBER: Final = rf"{_SPAN}|\\{_PUNCTUATION}|[A-Za-z0-9 _.,:;/@#%&=!'\"<>~*+?$|(){{}}]"
_TOKEN: Final = re.compile(
    r"\\(?P<class>[dwsDWS])"
    rf"|\\(?P<escaped>{_PUNCTUATION})"
    rf"|(?P<set>\[\^?-?(?:{_MEMBER})+-?\])"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)"
    r"|(?P<group>\((?:\?:)?)|(?P<end>\))|(?P<either>\|)|(?P<start>\^)|(?P<stop>\$)|(?P<dot>\.)"
    r"|(?P<plain>[A-Za-z0-9 _,:;/@#%&=!'\"<>~-])"
)
_SPACE: Final = r"\t\n\f\r "
_CLASSES: Final = {
    "d": "[0-9]",
    "w": "[0-9A-Za-z_]",
    "s": f"[{_SPACE}]",
    "D": "[^0-9]",
    "W": "[^0-9A-Za-z_]",
    "S": f"[^{_SPACE}]",
}
_FIXED: Final = {"start": r"\A", "stop": r"\z", "dot": r"[^\n]", "either": "|", "end": ")", "group": "(?:"}
_SET_MEMBER: Final = re.compile(rf"({_SPAN})|\\?(.)")
_UNREPEATABLE: Final = frozenset({"", "start", "stop", "either", "group", "end", "repeat"})
_REPEAT: Final = re.compile(r"\{(?P<least>\d+)(?P<range>,(?P<most>\d*))?\}")


def to_java(pattern: str) -> str:
    """Translates a pattern to Java; raises NotCompiled with the reason if it may not be equivalent."""
    tokens = list(_tokens(pattern))
    _check_choices(tokens)
    return "".join(_translated(kind, text) for kind, text in tokens)


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            raise NotCompiled(f"a regular expression with {pattern[at]!r} at {at + 1} may mean something else in Java")
        kind = str(found.lastgroup)
        yield kind, found[kind]
        at = found.end()


def _check_choices(tokens: list[tuple[str, str]]) -> None:
    """Allows at most one variable repetition, and an unbounded one only after a leading `^`."""
    varying = [text for kind, text in tokens if kind == "repeat" and _varies(text)]
    if len(varying) > 1:
        raise NotCompiled("a regular expression with several repetitions may take Java too long")
    if any(map(_is_unbounded, varying)) and not _is_anchored(tokens):
        raise NotCompiled("an open repetition without a leading '^' may take Java too long")
    if sum(kind == "group" for kind, _ in tokens) > 1:
        raise NotCompiled("a regular expression with several groups may take Java too long")
    for (before, _), (kind, text) in pairwise([("", ""), *tokens]):
        if kind == "repeat" and (before in _UNREPEATABLE or _highest(text) > MOST_REPEATS):
            raise NotCompiled("only single characters and sets may be repeated, and not too often")


def _is_anchored(tokens: list[tuple[str, str]]) -> bool:
    return tokens[0][0] == "start" and not any(kind == "either" for kind, _ in tokens)


def _varies(text: str) -> bool:
    found = _REPEAT.match(text)
    return found is None or (found["range"] is not None and found["least"] != found["most"])


def _is_unbounded(text: str) -> bool:
    found = _REPEAT.match(text)
    return text[0] in "*+" if found is None else found["range"] is not None and not found["most"]


def _highest(text: str) -> int:
    return max(map(int, re.findall(r"\d+", text)), default=0)


def _translated(kind: str, text: str) -> str:
    if kind in _FIXED:
        return _FIXED[kind]
    if kind == "repeat":
        return text
    if kind == "class":
        return _CLASSES[text]
    return _set(text) if kind == "set" else _escaped(text)


def _set(text: str) -> str:
    """Escapes every member, because Java gives `&&` and `[` inside a set another meaning."""
    opening = "[^" if text.startswith("[^") else "["
    members = _SET_MEMBER.findall(text[len(opening) : -1])
    return opening + "".join(span or _escaped(single) for span, single in members) + "]"


def _escaped(character: str) -> str:
    return character if character.isalnum() else f"\\{character}"
