"""Sessions: an event and its change of state, once."""

import pytest

from tape.core.errors import Conflict, NotFound, UsageError
from tape.core.session import Session, SessionEvent, SessionId
from tape.runs import sessions
from tests.unit.runs.memory_ledgers import MemoryLedgers

OF = SessionId(app="chat", user="ann", session="s1")


def create(ledgers: MemoryLedgers, state: str = "{}") -> Session:
    return ledgers.write(sessions.create(ledgers.snapshot, OF, state))


def append(ledgers: MemoryLedgers, name: str, delta: str = "{}") -> Session:
    return ledgers.write(sessions.append(ledgers.snapshot, OF, SessionEvent(id=name, content_json='"hi"'), delta))


def test_an_event_and_its_change_of_state_are_one_step() -> None:
    ledgers = MemoryLedgers()
    create(ledgers, '{"a":1,"b":{"c":2}}')

    session = append(ledgers, "e1", '{"b":3}')

    assert session.state == {"a": 1, "b": 3} and session.event_count == 1
    assert ledgers.verbs("event") == ["appended"]


def test_an_event_that_comes_twice_counts_once() -> None:
    ledgers = MemoryLedgers()
    create(ledgers)
    append(ledgers, "e1", '{"n":1}')

    again = append(ledgers, "e1", '{"n":1}')

    with pytest.raises(Conflict, match="stays"):
        append(ledgers, "e1", '{"n":2}')
    assert again.state == {"n": 1} and ledgers.verbs("event") == ["appended"]


def test_creating_twice_is_one_session() -> None:
    ledgers = MemoryLedgers()
    create(ledgers, '{"a":1}')

    assert create(ledgers, '{"a":2}').state == {"a": 1}
    assert ledgers.verbs("session") == ["created"]


def test_a_deleted_session_begins_anew() -> None:
    ledgers = MemoryLedgers()
    create(ledgers)
    append(ledgers, "e1", '{"n":1}')

    gone = ledgers.write(sessions.delete(ledgers.snapshot, OF)), ledgers.write(sessions.delete(ledgers.snapshot, OF))
    with pytest.raises(NotFound):
        append(ledgers, "e2")
    again = create(ledgers)

    assert gone == (True, False)
    assert (again.state, again.event_count, again.incarnation) == ({}, 0, 2)
    assert append(ledgers, "e1", '{"n":3}').state == {"n": 3}


def test_nothing_is_appended_to_a_session_that_is_not_there() -> None:
    with pytest.raises(NotFound, match="'ann' has no session 's1'"):
        append(MemoryLedgers(), "e1")


def test_a_change_of_state_is_an_object() -> None:
    ledgers = MemoryLedgers()
    create(ledgers)

    with pytest.raises(UsageError, match="JSON object"):
        append(ledgers, "e1", "[1]")


def test_an_event_is_an_entry_of_its_session_s_own_run() -> None:
    ledgers = MemoryLedgers()
    create(ledgers)
    append(ledgers, "e1", '{"n":1}')

    event = ledgers.events[-1]
    assert event.dims == ("chat", "ann", "s1") and event.run_id.startswith("tape.session.")
    assert isinstance(event.payload, dict) and isinstance(event.payload["event"], dict)
    assert event.payload["event"]["content_json"] == '"hi"' and event.payload["state_delta_json"] == '{"n":1}'
