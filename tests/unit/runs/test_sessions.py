"""Sessions: an event and its change of state, once."""

import pytest

from tape.core.errors import NotFound, UsageError
from tape.core.session import Session, SessionEvent, SessionId
from tape.runs import sessions
from tests.unit.runs.book import Book

OF = SessionId(app="chat", user="ann", session="s1")


def create(book: Book, state: str = "{}") -> Session:
    return book.write(sessions.create(book.snapshot, OF, state))


def append(book: Book, name: str, delta: str = "{}") -> Session:
    return book.write(sessions.append(book.snapshot, OF, SessionEvent(id=name, content_json='"hi"'), delta))


def test_an_event_and_its_change_of_state_are_one_step() -> None:
    book = Book()
    create(book, '{"a":1,"b":{"c":2}}')

    session = append(book, "e1", '{"b":3}')

    assert session.state == {"a": 1, "b": 3} and session.event_count == 1
    assert book.said("event") == ["appended"]


def test_an_event_that_comes_twice_counts_once() -> None:
    book = Book()
    create(book)
    append(book, "e1", '{"n":1}')

    again = append(book, "e1", '{"n":2}')

    assert again.state == {"n": 1} and book.said("event") == ["appended"]


def test_creating_twice_is_one_session() -> None:
    book = Book()
    create(book, '{"a":1}')

    assert create(book, '{"a":2}').state == {"a": 1}
    assert book.said("session") == ["created"]


def test_a_deleted_session_begins_anew() -> None:
    book = Book()
    create(book)
    append(book, "e1", '{"n":1}')

    gone = book.write(sessions.delete(book.snapshot, OF)), book.write(sessions.delete(book.snapshot, OF))
    with pytest.raises(NotFound):
        append(book, "e2")
    again = create(book)

    assert gone == (True, False)
    assert (again.state, again.event_count, again.incarnation) == ({}, 0, 2)
    assert append(book, "e1", '{"n":3}').state == {"n": 3}


def test_nothing_is_appended_to_a_session_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="'ann' has no session 's1'"):
        append(Book(), "e1")


def test_a_change_of_state_is_an_object() -> None:
    book = Book()
    create(book)

    with pytest.raises(UsageError, match="JSON object"):
        append(book, "e1", "[1]")


def test_an_event_says_everything_in_its_session_s_own_run() -> None:
    book = Book()
    create(book)
    append(book, "e1", '{"n":1}')

    event = book.events[-1]
    assert event.dims == ("chat", "ann", "s1") and event.run_id.startswith("tape.session.")
    assert isinstance(event.payload, dict) and isinstance(event.payload["event"], dict)
    assert event.payload["event"]["content_json"] == '"hi"' and event.payload["state_delta_json"] == '{"n":1}'
