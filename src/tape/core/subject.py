"""Subjects are paths that say what an entry is about; patterns select subjects."""

import re
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final
from urllib.parse import quote, unquote

from tape.core.errors import UsageError, quoted

MAX_BYTES: Final = 1024
MAX_SEGMENTS: Final = 32
ONE: Final = "*"
REST: Final = "**"

_SAFE: Final = "!\"$&'()+,:;<=>@[]^`{|}"  # beside letters, digits and -._~, which are never quoted

_is_plain = re.compile(rf"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~{re.escape(_SAFE)}-]+)+").fullmatch
_is_word = re.compile("[a-z][a-z0-9_-]*").fullmatch


def escape(segment: str) -> str:
    """A text as one segment; different texts give different segments."""
    if segment in ("", "_"):
        return "%5F" if segment else "_"
    try:
        return quote(segment, safe=_SAFE)
    except UnicodeEncodeError:
        raise UsageError(f"segment {quoted(segment)} holds a lone surrogate") from None


def unescape(segment: str) -> str:
    """The text of a segment."""
    if segment == "_":
        return ""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise UsageError(f"segment {quoted(segment)} is not percent-encoded UTF-8") from None


def build(*segments: str) -> str:
    """The subject with these texts as its segments."""
    return check("".join(f"/{escape(segment)}" for segment in segments))


def check(subject: object) -> str:
    """Returns the subject if it is valid."""
    if not isinstance(subject, str) or not subject.startswith("/"):
        raise UsageError(f"a subject is text that begins with '/', not {quoted(subject)}")
    _check_size(subject)
    if not _is_plain(subject):
        for segment in subject[1:].split("/"):
            _check_segment(segment, subject)
    return subject


def canonical(kind: str, verb: str, *dims: str) -> str:
    """The subject of an entry that Tape writes."""
    for word in (kind, verb):
        if not _is_word(word):
            raise UsageError(f"kind and verb are lower-case words, not {quoted(word)}")
    return build("tape", kind, verb, *dims)


def default(type: str, run_id: str) -> str:
    """The subject of an event that names none; both parts need no escaping."""
    return f"/tape/event/{type}/{run_id}"


def is_reserved(subject: str) -> bool:
    """Whether only Tape itself may write it."""
    path = f"{subject}/"
    if not path.startswith("/tape/"):
        return False
    return not path.startswith("/tape/event/") or path.startswith("/tape/event/appended/")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path in which `*` stands for exactly one segment and a last `**` for zero or more."""

    text: str
    head: tuple[str, ...] = field(init=False, repr=False, compare=False)
    is_open: bool = field(init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        return cls(text)

    def __post_init__(self) -> None:
        segments = _pattern_segments(self.text)
        is_open = segments[-1] == REST
        object.__setattr__(self, "head", tuple(segments[:-1] if is_open else segments))
        object.__setattr__(self, "is_open", is_open)

    def __str__(self) -> str:
        return self.text

    @property
    def literal(self) -> str | None:
        """The one subject it matches, if it has no wildcard."""
        return None if self.is_open or ONE in self.head else self.text

    def matches(self, subject: str) -> bool:
        segments = subject[1:].split("/")
        if self.is_open:
            segments = segments[: len(self.head)]
        return len(segments) == len(self.head) and all(
            mine in (ONE, theirs) for mine, theirs in zip(self.head, segments, strict=True)
        )

    def prefix_range(self) -> tuple[str, str] | None:
        """Bounds [low, high) in byte order around every subject it matches, or None when it begins with a wildcard."""
        if self.literal:
            return self.text, self.text + "!"  # the lowest character that can follow in a subject
        fixed = tuple(takewhile(lambda segment: segment != ONE, self.head))
        if not fixed:
            return None
        prefix = "/" + "/".join(fixed)
        return prefix if fixed == self.head else prefix + "/", prefix + "0"  # 0 comes right after /


def _pattern_segments(text: object) -> list[str]:
    if not isinstance(text, str) or not text.startswith("/"):
        raise UsageError(f"a pattern is text that begins with '/', not {quoted(text)}")
    _check_size(text)
    *head, last = text[1:].split("/")
    for segment in head if last in (ONE, REST) else (*head, last):
        if segment != ONE:
            _check_literal(segment, text)
    return [*head, last]


def _check_literal(segment: str, pattern: str) -> None:
    if segment == REST:
        raise UsageError(f"'**' may only be the last segment of a pattern, not as in {quoted(pattern)}")
    if ONE in segment:
        raise UsageError(f"'*' stands for a whole segment; write a literal one as %2A in {quoted(pattern)}")
    _check_segment(segment, pattern)


def _check_size(path: str) -> None:
    if len(path) > MAX_BYTES:  # what is not ASCII is refused anyway, so characters are bytes
        raise UsageError(f"a subject is at most {MAX_BYTES:,} bytes, not {len(path):,}: {quoted(path)}")
    if path.count("/") > MAX_SEGMENTS:
        raise UsageError(f"a subject has at most {MAX_SEGMENTS} segments, not {path.count('/')}: {quoted(path)}")


def _check_segment(segment: str, path: str) -> None:
    if segment == "":
        raise UsageError(f"{quoted(path)} has an empty segment; an empty text is written _")
    if segment in (".", ".."):
        raise UsageError(f"{quoted(path)} has a segment {segment!r}, which paths elsewhere would resolve")
    if segment != (escaped := escape(unescape(segment))):
        raise UsageError(f"segment {quoted(segment)} is not canonical; write {quoted(escaped)}")
