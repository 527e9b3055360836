"""A request refuses what its schema refuses, wherever it is made."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from tape.core.errors import TooLarge, UsageError
from tape.operations.catalogue import OPERATIONS
from tape.operations.effects import ListEffects
from tape.operations.fields import MEANINGS, RULES
from tape.operations.operation import Operation, OperationRequest
from tape.operations.tasks import ListTasks, NackTask
from tape.wire.operation_json import example_of, given_name, is_json, read_text, request_of, request_type, type_given

by_name = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
NEVER = object()


def outside(kind: Any) -> list[Any]:
    """Values that no field of this type may have."""
    found = inspect.type_info(type_given(kind))
    if isinstance(found, inspect.IntType):
        return [each for each in (_below(found.ge), _above(found.le)) if each is not None] + ["1", 1.5, True]
    if isinstance(found, inspect.StrType):
        return [7, *([] if found.max_length is None else ["x" * (found.max_length + 1)])]
    if isinstance(found, inspect.EnumType | inspect.LiteralType):
        return ["nonsense", 99]
    return [NEVER]


def _below(least: int | None) -> int | None:
    return None if least is None else least - 1


def _above(most: int | None) -> int | None:
    return None if most is None else most + 1


@by_name
def test_a_request_refuses_what_its_schema_refuses(operation: Operation) -> None:
    request = request_of(operation, read_text(operation, example_of(operation)))
    types = {each.name: each.type for each in msgspec.structs.fields(request_type(operation))}
    accepted = []
    for field in fields(request):  # type: ignore[arg-type]  # every request type is a dataclass
        is_duration = isinstance(getattr(request, field.name), timedelta)
        name = f"{field.name}_ms" if is_duration else given_name(operation.request, field.name)
        if field.name == "of" or is_json(field.name, name):
            continue
        for value in outside(types[name]):
            if is_duration:
                value = timedelta(milliseconds=value) if type(value) is int else NEVER
            if _is_accepted(request, field.name, value):
                accepted.append((field.name, value if not isinstance(value, str) else value[:10]))

    assert accepted == []


def _is_accepted(request: OperationRequest[Any], name: str, value: Any) -> bool:
    given = {each: getattr(request, each) for each in type(request).__dataclass_fields__}  # type: ignore[attr-defined]
    try:
        type(request)(**{**given, name: value})
    except (UsageError, TooLarge):
        return False
    return True


def test_no_request_type_replaces_the_check_of_its_fields() -> None:
    assert [each.name for each in OPERATIONS if "__post_init__" in vars(each.request)] == []


def test_a_status_that_does_not_exist_is_refused_by_its_name() -> None:
    with pytest.raises(UsageError, match="the status is pending, confirmed, failed, unknown, not 'nonsense'"):
        ListEffects(run_id="r", status="nonsense")  # type: ignore[arg-type]


def test_an_error_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="error is text, not int"):
        NackTask(task_id="t", owner="o", error=123)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [MEANINGS, RULES], ids=["meanings", "rules"])
def test_a_table_that_names_a_class_names_one_with_this_field(table: Mapping[str, object]) -> None:
    owners = {owner for each in OPERATIONS for kind in (each.request, *_parts(each.request)) for owner in kind.__mro__}
    known = {f"{owner.__name__}.{name}" for owner in owners for name in vars(owner).get("__annotations__", ())}

    assert [name for name in table if "." in name and name not in known] == []


def _parts(request: Any) -> list[Any]:
    return [each.type for each in fields(request) if each.name == "of"]


def test_a_text_that_is_none_of_a_few_values_is_refused_with_these() -> None:
    tasks = next(each for each in OPERATIONS if each.request is ListTasks)

    with pytest.raises(UsageError, match="status is pending, claimed, done, failed, dlq, not 'nonsense'"):
        read_text(tasks, {"status": "nonsense"})
