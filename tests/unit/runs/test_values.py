"""Values: versions, compare and set, tombstones."""

import pytest

from tape.core.errors import UsageError, VersionConflict
from tape.core.value import Value
from tape.operations.values import WriteValue
from tape.runs import values
from tests.unit.runs.memory_ledgers import MemoryLedgers

PLACE = ("treasury", "fx")


def write(ledgers: MemoryLedgers, text: str, if_version: int | None = None, at: tuple[str, str] = PLACE) -> Value:
    request = WriteValue(namespace=at[0], key=at[1], value_json=text, if_version=if_version, writer="desk")
    return ledgers.write(values.write(ledgers.snapshot, request))


def delete(ledgers: MemoryLedgers, if_version: int | None = None) -> Value:
    return ledgers.write(values.delete(ledgers.snapshot, "treasury", "fx", if_version))


def test_each_write_is_a_version_and_a_deletion_is_one_too() -> None:
    ledgers = MemoryLedgers()

    versions = [write(ledgers, "70").version, write(ledgers, "90").version, delete(ledgers).version]
    found = values.value_of(ledgers.snapshot, "treasury", "fx")

    assert versions == [1, 2, 3]
    assert (found.deleted, found.version) == (True, 3)
    assert ledgers.verbs("value") == ["changed", "changed", "deleted"]


def test_a_write_over_a_stale_version_is_refused() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "70")

    with pytest.raises(VersionConflict):
        write(ledgers, "90", if_version=0)
    with pytest.raises(VersionConflict):
        write(ledgers, "90", if_version=2)
    assert write(ledgers, "90", if_version=1).version == 2


def test_a_request_that_asks_for_a_value_and_for_none_is_refused() -> None:
    with pytest.raises(UsageError, match="give one of them"):
        WriteValue(namespace="treasury", key="fx", value_json="1", if_version=0, if_exists=True)


def test_what_was_deleted_may_be_created_again() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "70"), delete(ledgers)

    assert write(ledgers, "1", if_version=0).version == 3


def test_deleting_what_is_not_there_changes_nothing() -> None:
    ledgers = MemoryLedgers()

    assert delete(ledgers).version == 0
    write(ledgers, "1"), delete(ledgers)
    assert delete(ledgers).version == 2 and ledgers.verbs("value") == ["changed", "deleted"]


def test_a_deletion_may_be_for_one_version_only() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "1"), write(ledgers, "2")

    with pytest.raises(VersionConflict):
        delete(ledgers, if_version=1)
    assert delete(ledgers, if_version=2).deleted


def test_a_change_has_the_previous_value() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "70"), write(ledgers, "90")

    assert ledgers.events[-1].dims == ("treasury", "fx")
    assert ledgers.events[-1].payload == {
        "namespace": "treasury",
        "key": "fx",
        "version": 2,
        "writer": "desk",
        "prev_version": 1,
        "prev_value_json": "70",
        "value": {"namespace": "treasury", "key": "fx", "value_json": "90", "version": 2},
    }


def test_changes_of_a_namespace_are_entries_of_one_system_run() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "1")
    write(ledgers, "1", at=("treasury", "other"))
    write(ledgers, "1", at=("hr", "fx"))

    runs = [event.run_id for event in ledgers.events]

    assert runs[0] == runs[1] != runs[2] and all(run.startswith("tape.value.") for run in runs)


def test_a_version_to_decide_on_is_a_number_from_0_on() -> None:
    with pytest.raises(UsageError, match="if_version"):
        write(MemoryLedgers(), "1", if_version=-1)


def test_namespaces_and_keys_are_not_mixed_up() -> None:
    ledgers = MemoryLedgers()
    write(ledgers, "1", at=("a/b", "c"))

    assert values.value_of(ledgers.snapshot, "a", "b/c").version == 0
