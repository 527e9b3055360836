"""Fuzz targets: subjects, and the patterns that select them."""

import re

from tape.core import subject as subjects
from tape.core.errors import UsageError
from tape.core.subject import ONE, REST, Pattern
from tape.core.trie import Trie
from tests.fuzz.inputs import text


def subject(data: bytes) -> None:
    """A subject that is accepted is the only spelling of its segments; any texts can be made into one, and read."""
    given = text(data)
    _check_spelling(given)
    segments = given.split("\n")
    try:
        built = subjects.build(*segments)
    except UsageError:
        return
    assert [subjects.unescape(segment) for segment in built[1:].split("/")] == segments
    _check_spelling(built, is_valid=True)


def _check_spelling(path: str, *, is_valid: bool = False) -> None:
    try:
        checked = subjects.check(path)
    except UsageError:
        assert not is_valid
        return
    assert checked == path and path.isascii() and path.isprintable() and len(path) <= subjects.MAX_BYTES
    assert subjects.build(*map(subjects.unescape, path[1:].split("/"))) == path


def pattern(data: bytes) -> None:
    """A pattern matches what a regular expression made of it matches, alone and among others, within its range."""
    first, _, second = text(data).partition("\n")
    try:
        found, other = Pattern.parse(first), subjects.check(second)
    except UsageError:
        return
    assert Pattern.parse(str(found)) == found
    is_match = found.matches(other)
    assert is_match == (_expression(found).fullmatch(other) is not None)
    trie = Trie[str]()
    trie.add(found, "found")
    trie.add(Pattern.parse("/**"), "any")
    assert sorted(trie.match(other)) == ["any", "found"][: 1 + is_match]
    low, high = found.prefix_range() or ("", "\x7f")
    assert not is_match or low <= other < high
    assert found.literal is None or is_match == (low <= other < high)


def _expression(found: Pattern) -> re.Pattern[str]:
    parts = ["(/[^/]+)*" if part == REST else f"/{_one(part)}" for part in found.text[1:].split("/")]
    return re.compile("".join(parts))


def _one(segment: str) -> str:
    return "[^/]+" if segment == ONE else re.escape(segment)
