"""The last shared entry of two runs, and the pairs after it."""

from __future__ import annotations

import pytest

from tape.core.codec import JsonValue
from tape.core.diff import Change, DiffRow, last_shared_seq, side_by_side
from tape.core.event import Entry, Event
from tape.core.fork import Ancestor, Lineage
from tape.core.ids import Epoch, RunId, Seq
from tape.core.run import Head

ROOT, CHILD, SIBLING, GRANDCHILD = (RunId(name) for name in ("root", "child", "sibling", "grandchild"))


def entry(seq: int, payload: JsonValue | bytes, type: str = "message", kind: str = "event", run_id: str = "r") -> Entry:
    content_type = "text/plain" if isinstance(payload, bytes) else "application/json"
    event = Event(run_id=run_id, payload=payload, type=type, kind=kind, subject="/s", content_type=content_type)
    return event.at(seq + 100, seq, 5, 0, Epoch(5))


def head(last_seq: int, *ancestors: tuple[RunId, int]) -> Head:
    lineage: Lineage = tuple(Ancestor(run_id, Seq(seq)) for run_id, seq in ancestors)
    return Head(last_seq=Seq(last_seq), lineage=lineage)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (ROOT, CHILD, 5),
        (CHILD, ROOT, 5),
        (CHILD, SIBLING, 3),
        (ROOT, GRANDCHILD, 5),
        (CHILD, GRANDCHILD, 7),
        (SIBLING, GRANDCHILD, 3),
        (ROOT, ROOT, 9),
        (ROOT, RunId("stranger"), 0),
    ],
)
def test_runs_part_where_different_runs_own_their_entries(one: RunId, other: RunId, shared: int) -> None:
    heads = {
        ROOT: head(9),
        CHILD: head(8, (ROOT, 5)),
        SIBLING: head(6, (ROOT, 3)),
        GRANDCHILD: head(12, (ROOT, 5), (CHILD, 7)),
        RunId("stranger"): head(4),
    }

    assert last_shared_seq(heads, one, other) == shared


def test_what_a_fork_begins_with_stands_beside_nothing_in_its_parent() -> None:
    parent = [entry(4, "a"), entry(5, "b")]
    child = [entry(4, {}, "fork", "run"), entry(5, {"wind": 9}, "mutation"), entry(6, "a"), entry(7, "c")]

    rows = side_by_side(parent, child)

    assert [(row.one and row.one.seq, row.other and row.other.seq, row.is_same) for row in rows] == [
        (None, 4, False),
        (None, 5, False),
        (4, 6, True),
        (5, 7, False),
    ]


def test_what_two_forks_begin_with_stands_side_by_side() -> None:
    one = [entry(4, {"at_seq": 3}, "fork", "run"), entry(5, {"wind": 9}, "mutation")]
    other = [entry(4, {"at_seq": 3}, "fork", "run"), entry(5, {"wind": 1}, "mutation")]

    forked, mutated = side_by_side(one, other)

    assert forked.is_same
    assert mutated.changes == (Change("wind", "9", "1"),)


def test_a_run_that_ended_earlier_has_nothing_to_show() -> None:
    rows = side_by_side([entry(1, "a")], [entry(1, "a"), entry(2, "b")])

    assert [row.is_same for row in rows] == [True, False]
    assert rows[1].one is None and rows[1].changes == ()


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [("b", "2", "3")]),
        ({"a": {"b": [1, {"c": None}]}}, {"a": {"b": [1, {"c": False}]}}, [("a.b[1].c", "null", "false")]),
        ({"a": [1, 2]}, {"a": [1]}, [("a[1]", "2", None)]),
        ({"a": []}, {"a": [1]}, [("a", "[]", None), ("a[0]", None, "1")]),
        ({}, {"b": "é"}, [("", "{}", None), ("b", None, '"é"')]),
        (1, 1.5, [("", "1", "1.5")]),
        ({"a.b": 1}, {"a": {"b": 1}}, [('["a.b"]', "1", None), ("a.b", None, "1")]),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, {"a": {"b.c": 3, "b": {"c": 2}}}, [('a["b.c"]', "1", "3")]),
        ({"": 1}, 1, [('[""]', "1", None), ("", None, "1")]),
        ({"a[0]": 1}, {"a": [1]}, [('["a[0]"]', "1", None), ("a[0]", None, "1")]),
        ({"größe": 1}, {"größe": 2}, [("größe", "1", "2")]),
        (b"one", b"three", [("", "3 bytes, 7692c3ad3540", "5 bytes, 8b5b9db0c13d")]),
        (b"one", b"two", [("", "3 bytes, 7692c3ad3540", "3 bytes, 3fc4ccfe7458")]),
    ],
)
def test_fields_that_differ_are_named_by_their_path(
    one: JsonValue | bytes, other: JsonValue | bytes, changes: list[tuple[str, str | None, str | None]]
) -> None:
    row = DiffRow(entry(1, one), entry(1, other))

    assert not row.is_same
    assert list(row.changes) == changes


def test_entries_of_two_types_are_not_compared_field_by_field() -> None:
    row = DiffRow(entry(1, {"a": 1}, "turn"), entry(1, {"a": 2}, "metric"))

    assert (row.is_same, row.changes) == (False, ())
