"""Subjects, patterns and the trie that holds many of them."""

import pytest

from tape.core import subject as subjects
from tape.core.errors import UsageError
from tape.core.subject import Pattern
from tape.core.trie import Trie


@pytest.mark.parametrize(
    ("raw", "segment"),
    [
        ("", "_"),
        ("_", "%5F"),
        ("__", "__"),
        ("a/b", "a%2Fb"),
        ("*", "%2A"),
        ("**", "%2A%2A"),
        ("100%", "100%25"),
        ("a b?#\\", "a%20b%3F%23%5C"),
        ("\0\n\x7f", "%00%0A%7F"),
        ("é€", "%C3%A9%E2%82%AC"),
        ("Treasury:FX+1@home~v2.0", "Treasury:FX+1@home~v2.0"),
        ("!\"$&'(),;<=>[]^`{|}", "!\"$&'(),;<=>[]^`{|}"),
    ],
)
def test_a_segment_escapes_only_what_a_path_cannot_hold(raw: str, segment: str) -> None:
    assert subjects.escape(raw) == segment
    assert subjects.unescape(segment) == raw


def test_a_lone_surrogate_has_no_segment() -> None:
    with pytest.raises(UsageError, match="lone surrogate"):
        subjects.escape("\ud800")


def test_a_subject_is_built_of_raw_texts() -> None:
    assert subjects.build("orders", "a/b", "", "_") == "/orders/a%2Fb/_/%5F"


@pytest.mark.parametrize(
    "subject",
    ["/a", "/_", "/%5F", "/Orders/42", "/a/...", "/.a", "/a%2Fb", "/%00", "/%C3%A9", "/" + "a" * 1023, "/a" * 32],
    ids=lambda subject: subject[:12],
)
def test_a_canonical_subject_is_accepted_as_it_is(subject: str) -> None:
    assert subjects.check(subject) == subject


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("", "begins with '/'"),
        ("orders", "begins with '/'"),
        (7, "not 7"),
        ("/", "empty segment"),
        ("/a//b", "empty segment"),
        ("/a/", "empty segment"),
        ("/a/./b", "a segment '.'"),
        ("/..", r"a segment '\.\.'"),
        ("/a b", "write 'a%20b'"),
        ("/a*", "write 'a%2A'"),
        ("/a/**", "write '%2A%2A'"),
        ("/é", "write '%C3%A9'"),
        ("/a%2fb", "write 'a%2Fb'"),
        ("/%41", "write 'A'"),
        ("/%5f", "write '%5F'"),
        ("/a%zz", "write 'a%25zz'"),
        ("/50%", "write '50%25'"),
        ("/%FF", "not percent-encoded UTF-8"),
        ("/%C0%AF", "not percent-encoded UTF-8"),
        ("/a\n", "write 'a%0A'"),
        ("/" + "a" * 1024, "at most 1,024 bytes, not 1,025"),
        ("/a" * 33, "at most 32 segments, not 33"),
        ("/\ud800", "lone surrogate"),
    ],
    ids=lambda value: ascii(value)[:16],
)
def test_anything_else_is_refused_with_the_reason(subject: object, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        subjects.check(subject)


def test_an_error_echoes_little_and_escaped() -> None:
    with pytest.raises(UsageError) as refused:
        subjects.check("\x1b]0;\u202e" * 10_000)

    assert len(str(refused.value)) < 120
    assert str(refused.value).isprintable()


def test_a_canonical_subject_keeps_the_case_of_its_dimensions() -> None:
    assert subjects.canonical("value", "changed", "Treasury", "FX/eur") == "/tape/value/changed/Treasury/FX%2Feur"


@pytest.mark.parametrize(("kind", "verb"), [("Run", "started"), ("run", "STARTED"), ("", "x"), ("run", "a/b")])
def test_kind_and_verb_are_lower_case_words(kind: str, verb: str) -> None:
    with pytest.raises(UsageError, match="lower-case"):
        subjects.canonical(kind, verb, "x")


def test_the_default_subject_names_type_and_run() -> None:
    subject = subjects.default("turn.Started", "Run-1")

    assert subject == "/tape/event/turn.Started/Run-1"
    assert subjects.check(subject) == subject


@pytest.mark.parametrize(
    "subject",
    ["/orders", "/tapes/x", "/Tape/x", "/x/tape/run", "/tape/event", "/tape/event/message/r", "/tape/event/appendedx"],
)
def test_a_producer_may_write_any_root_and_events(subject: str) -> None:
    assert not subjects.is_reserved(subject)


@pytest.mark.parametrize(
    "subject",
    ["/tape", "/tape/run/started/r", "/tape/events/x", "/tape/event/appended", "/tape/event/appended/a/u/s"],
)
def test_subjects_that_tape_itself_writes_are_reserved(subject: str) -> None:
    assert subjects.is_reserved(subject)


@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        ("/tape/effect/**", "/tape/effect/confirmed/sweep/r"),
        ("/tape/**", "/tape"),
        ("/**", "/a/b/c"),
        ("/*", "/a"),
        ("/tape/effect/*/x", "/tape/effect/y/x"),
        ("/a/*/b/**", "/a/x/b"),
        ("/a/*/b/**", "/a/x/b/c/d"),
        ("/a/b", "/a/b"),
        ("/a/%2A", "/a/%2A"),
        ("/*/**", "/a"),
    ],
)
def test_a_pattern_matches(pattern: str, subject: str) -> None:
    assert Pattern.parse(pattern).matches(subject)


@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        ("/tape/effect/*", "/tape/effect/a/b"),
        ("/tape/effect/*", "/tape/effect"),
        ("/tape/effect/*/x", "/tape/effect/y/z/x"),
        ("/tape/**", "/tapes"),
        ("/a/*/b/**", "/a/b"),
        ("/a/b", "/A/b"),
        ("/a/b", "/a/b/c"),
        ("/a_b/**", "/axb/c"),
        ("/a/%2A", "/a/x"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, subject: str) -> None:
    assert not Pattern.parse(pattern).matches(subject)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with '/'"),
        ("**", "begins with '/'"),
        ("/", "empty segment"),
        ("/a//*", "empty segment"),
        ("/**/a", "only be the last"),
        ("/a*", "%2A"),
        ("/***", "%2A"),
        ("/a b/*", "write 'a%20b'"),
        ("/../*", "segment"),
        ("/a" * 32 + "/**", "at most 32 segments"),
        ("/" + "a" * 1024, "at most 1,024 bytes"),
    ],
    ids=lambda value: value[:12],
)
def test_a_bad_pattern_cannot_exist(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Pattern.parse(text)


@pytest.mark.parametrize(
    ("pattern", "bounds"),
    [
        ("/tape/effect/confirmed/**", ("/tape/effect/confirmed", "/tape/effect/confirmed0")),
        ("/tape/effect/*/x/**", ("/tape/effect/", "/tape/effect0")),
        ("/a/b", ("/a/b", "/a/b!")),
        ("/**", None),
        ("/*/b", None),
    ],
)
def test_a_prefix_range_is_as_narrow_as_the_literal_beginning(pattern: str, bounds: tuple[str, str] | None) -> None:
    assert Pattern.parse(pattern).prefix_range() == bounds


def test_a_pattern_is_literal_only_without_wildcards() -> None:
    assert Pattern.parse("/a/b").literal == "/a/b"
    assert Pattern.parse("/a/*").literal is None
    assert Pattern.parse("/a/**").literal is None


def test_equal_patterns_are_one_key() -> None:
    assert {Pattern.parse("/a/*"), Pattern.parse("/a/*")} == {Pattern("/a/*")}


def test_a_trie_gives_a_value_once_for_each_pattern_that_matches() -> None:
    trie = Trie[str]()
    for pattern, value in [("/a/**", "x"), ("/a/*", "x"), ("/a/b", "y"), ("/a/b", "z"), ("/c", "x"), ("/a/b", "y")]:
        trie.add(Pattern.parse(pattern), value)

    assert sorted(trie.match("/a/b")) == ["x", "x", "y", "z"]
    assert len(trie) == 5


def test_a_discarded_pair_is_gone_and_the_others_stay() -> None:
    trie = Trie[str]()
    trie.add(Pattern.parse("/a/b"), "x")
    trie.add(Pattern.parse("/a/b/**"), "y")

    trie.discard(Pattern.parse("/a/b"), "x")
    trie.discard(Pattern.parse("/a/b"), "x")
    trie.discard(Pattern.parse("/a/b/c/d"), "y")

    assert trie.match("/a/b") == ["y"]
    assert len(trie) == 1


def test_an_emptied_trie_keeps_no_nodes() -> None:
    trie = Trie[str]()
    patterns = [Pattern.parse(text) for text in ("/a/b/c", "/a/*/c/**", "/a", "/**")]
    for pattern in patterns:
        trie.add(pattern, "x")

    for pattern in patterns:
        trie.discard(pattern, "x")

    assert not trie
    assert not trie._root.children  # noqa: SLF001
