"""Subjects round-trip, and the trie agrees with the naive matcher."""

from hypothesis import given, strategies as st

from tape.core import subject as subjects
from tape.core.errors import UsageError
from tape.core.subject import Pattern
from tape.core.trie import Trie

texts = st.text(st.characters(codec="utf-8") | st.sampled_from("/*%?#\\ _.~\0\x7f"), max_size=12)
raw = texts.filter(lambda text: text not in (".", ".."))
words = st.sampled_from(["a", "b", "A", "_", "%5F", "%2A", "a!", "a0", "a-b"])
paths = st.lists(words, min_size=1, max_size=5).map(lambda segments: "/" + "/".join(segments))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    head = draw(st.lists(words | st.just("*"), max_size=4))
    tail = draw(st.lists(st.just("**"), min_size=0 if head else 1, max_size=1))
    return Pattern.parse("/" + "/".join(head + tail))


@given(st.lists(raw, min_size=1, max_size=8))
def test_the_segments_of_a_subject_are_the_texts_it_was_built_of(segments: list[str]) -> None:
    subject = subjects.build(*segments)

    assert [subjects.unescape(segment) for segment in subject[1:].split("/")] == segments
    assert subjects.check(subject) == subject
    assert subject.isascii()


@given(st.text(st.sampled_from("/%aA5fF2_.*é \0"), max_size=12).map(lambda text: "/" + text))
def test_a_subject_that_passes_is_the_only_spelling_of_its_segments(subject: str) -> None:
    try:
        subjects.check(subject)
    except UsageError:
        return

    assert subjects.build(*map(subjects.unescape, subject[1:].split("/"))) == subject


@given(st.lists(patterns(), max_size=30), paths)
def test_the_trie_agrees_with_the_naive_matcher(some: list[Pattern], subject: str) -> None:
    trie = Trie[Pattern]()
    for pattern in some:
        trie.add(pattern, pattern)

    found = trie.match(subject)

    assert sorted(map(str, found)) == sorted({str(pattern) for pattern in some if pattern.matches(subject)})


@given(st.lists(patterns(), max_size=15), st.lists(patterns(), max_size=15), paths)
def test_what_was_discarded_was_never_there(kept: list[Pattern], dropped: list[Pattern], subject: str) -> None:
    trie, expected = Trie[str](), Trie[str]()
    for pattern in kept:
        trie.add(pattern, "kept")
        expected.add(pattern, "kept")
    for pattern in dropped:
        trie.add(pattern, "dropped")

    for pattern in dropped:
        trie.discard(pattern, "dropped")

    assert trie.match(subject) == expected.match(subject)
    assert len(trie) == len(expected)


@given(patterns(), paths)
def test_every_match_lies_in_the_prefix_range(pattern: Pattern, subject: str) -> None:
    bounds = pattern.prefix_range()

    assert bounds is None or not pattern.matches(subject) or bounds[0] <= subject < bounds[1]


@given(patterns(), paths)
def test_a_literal_pattern_has_no_other_subject_in_its_range(pattern: Pattern, subject: str) -> None:
    low, high = pattern.prefix_range() or ("", "")

    assert pattern.literal is None or (low <= subject < high) == (subject == pattern.literal)
