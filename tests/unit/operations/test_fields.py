"""A request refuses what its schema refuses, wherever it is made."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from enum import Enum, IntEnum
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from tape.core.errors import TooLarge, UsageError
from tape.core.task import TaskStatus
from tape.operations.catalogue import OPERATIONS
from tape.operations.effects import ListEffects
from tape.operations.fields import MEANINGS, RULES, without_none
from tape.operations.operation import Access, Operation, OperationRequest
from tape.operations.tasks import ListTasks, NackTask
from tape.wire.message_mapping import member
from tape.wire.operation_json import example_of, given_name, is_json, read_text, request_of, request_type, type_given
from tape.wire.strict_json import convert

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
def test_a_request_refuses_a_field_that_it_does_not_have(operation: Operation) -> None:
    with pytest.raises(UsageError, match="the body has no field nonsense"):
        convert({"nonsense": 1, **read_text(operation, example_of(operation))}, request_type(operation))


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

    with pytest.raises(UsageError, match="status is pending, claimed, done, dlq, not 'nonsense'"):
        read_text(tasks, {"status": "nonsense"})


def test_an_unknown_choice_is_refused_with_the_known_ones() -> None:
    """In this process, in a query or with a command, and as a number over gRPC; no choice is one that nothing has."""
    for operation, name, kind in choices():
        known = [each.name.lower() if isinstance(each, IntEnum) else str(each) for each in kind]
        with pytest.raises(UsageError) as embedded:
            operation.request(**{**REQUIRED.get(operation.name, {}), name: "nonsense"})
        with pytest.raises(UsageError) as text:
            read_text(operation, {name: "nonsense"})
        with pytest.raises(UsageError) as number:
            member(kind, 99)
        assert not [each for each in known for error in (embedded, text, number) if each not in str(error.value)]


def choices() -> Iterator[tuple[Operation, str, type[Enum]]]:
    """Every field that lists and other reads have a few choices for."""
    for operation in OPERATIONS:
        for field in fields(operation.request) if operation.access is Access.READ else ():  # type: ignore[arg-type]
            kind = without_none(field.type)
            if isinstance(kind, type) and issubclass(kind, Enum):
                yield operation, field.name, kind


REQUIRED: Mapping[str, Mapping[str, Any]] = {
    each: {"run_id": "order-1"} for each in ("effect.list", "obligation.list", "decision.list")
}


@pytest.mark.parametrize("ask", [
    lambda: read_text(next(each for each in OPERATIONS if each.request is ListTasks), {"status": "failed"}),
    lambda: ListTasks(status=4),  # type: ignore[arg-type]
    lambda: member(TaskStatus, 4),
], ids=["text", "embedded", "wire"])  # fmt: skip
def test_the_status_4_of_the_protocol_which_no_task_has_is_unknown(ask: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=r"pending.*claimed.*done.*dlq.*not .*(4|failed)"):
        ask()
