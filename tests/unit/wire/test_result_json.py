"""Results of operations as JSON."""

import pytest

from tape.core.ids import RunId
from tape.core.run import Head, RunMeta, RunRecord
from tape.operations.catalogue import ALL
from tape.operations.operation import Operation
from tape.wire.result_json import plain, result_type, write_result


def operation(name: str) -> Operation:
    return next(each for each in ALL if each.name == name)


def test_an_id_of_a_run_is_an_object_with_it() -> None:
    assert write_result(operation("run.newest"), RunId("r")) == {"run_id": "r"}


def test_a_result_that_is_no_record_and_no_run_id_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"the result of node\.metrics"):
        result_type(operation("node.metrics"))
    with pytest.raises(TypeError, match=r"the result of node\.metrics"):
        write_result(operation("node.metrics"), "up 1")


def test_members_are_written_as_json_has_them() -> None:
    record = RunRecord(run_id=RunId("r"), meta=RunMeta(label="first"), head=Head(), opened_at_ms=7)

    written = plain(record)

    assert (written["run_id"], written["label"], written["opened_at_ms"], written["status"]) == (
        "r",
        "first",
        7,
        "running",
    )
    assert type(written["status"]) is str and written["lineage"] == []
