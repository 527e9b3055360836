"""Values: versions, compare and set, tombstones."""

import pytest

from tape.core.errors import UsageError, VersionConflict
from tape.core.value import Value
from tape.runs import values
from tests.unit.runs.book import Book


def write(book: Book, text: str, if_version: int | None = None) -> Value:
    return book.write(values.write(book.snapshot, "treasury", "fx", text, if_version, "desk"))


def delete(book: Book, if_version: int | None = None) -> Value:
    return book.write(values.delete(book.snapshot, "treasury", "fx", if_version))


def test_each_write_is_a_version_and_a_deletion_is_one_too() -> None:
    book = Book()

    versions = [write(book, "70").version, write(book, "90").version, delete(book).version]
    found = values.value_of(book.snapshot, "treasury", "fx")

    assert versions == [1, 2, 3]
    assert (found.deleted, found.version) == (True, 3)
    assert book.said("value") == ["changed", "changed", "deleted"]


def test_a_write_over_a_stale_version_is_refused() -> None:
    book = Book()
    write(book, "70")

    with pytest.raises(VersionConflict):
        write(book, "90", if_version=0)
    with pytest.raises(VersionConflict):
        write(book, "90", if_version=2)
    assert write(book, "90", if_version=1).version == 2


def test_what_was_deleted_may_be_created_again() -> None:
    book = Book()
    write(book, "70"), delete(book)

    assert write(book, "1", if_version=0).version == 3


def test_deleting_what_is_not_there_changes_nothing() -> None:
    book = Book()

    assert delete(book).version == 0
    write(book, "1"), delete(book)
    assert delete(book).version == 2 and book.said("value") == ["changed", "deleted"]


def test_a_deletion_may_be_for_one_version_only() -> None:
    book = Book()
    write(book, "1"), write(book, "2")

    with pytest.raises(VersionConflict):
        delete(book, if_version=1)
    assert delete(book, if_version=2).deleted


def test_a_change_says_what_was_before() -> None:
    book = Book()
    write(book, "70"), write(book, "90")

    assert book.events[-1].dims == ("treasury", "fx")
    assert book.events[-1].payload == {
        "namespace": "treasury",
        "key": "fx",
        "version": 2,
        "writer": "desk",
        "prev_version": 1,
        "prev_value_json": "70",
        "value": {"namespace": "treasury", "key": "fx", "value_json": "90", "version": 2},
    }


def test_values_of_a_namespace_are_said_in_one_system_run() -> None:
    book = Book()
    write(book, "1")
    book.write(values.write(book.snapshot, "treasury", "other", "1"))
    book.write(values.write(book.snapshot, "hr", "fx", "1"))

    runs = [event.run_id for event in book.events]

    assert runs[0] == runs[1] != runs[2] and all(run.startswith("tape.value.") for run in runs)


def test_a_version_to_decide_on_is_a_number_from_0_on() -> None:
    with pytest.raises(UsageError, match="if_version"):
        write(Book(), "1", if_version=-1)


def test_namespaces_and_keys_are_not_mixed_up() -> None:
    book = Book()
    book.write(values.write(book.snapshot, "a/b", "c", "1"))

    assert values.value_of(book.snapshot, "a", "b/c").version == 0
