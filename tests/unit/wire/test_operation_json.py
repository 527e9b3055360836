"""Requests of operations from JSON."""

from enum import Enum
from typing import Any

import msgspec
import pytest

from tape.operations.catalogue import OPERATIONS
from tape.operations.fields import may_be_none, without_none
from tape.operations.operation import Operation
from tape.operations.surfaces import flat_fields
from tape.wire.operation_json import example_of, request_of, request_type


def optional_enums(operation: Operation) -> list[str]:
    fields: list[Any] = [each for each in flat_fields(operation.request) if may_be_none(each.type)]
    kinds = {each.name: without_none(each.type) for each in fields}
    return [name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Enum)]


WITH_ENUMS = [each for each in OPERATIONS if optional_enums(each)]


@pytest.mark.parametrize("operation", WITH_ENUMS, ids=lambda each: each.name)
def test_a_field_that_may_be_null_is_null(operation: Operation) -> None:
    names = optional_enums(operation)
    body = {**example_of(operation), **dict.fromkeys(names)}

    request = request_of(operation, msgspec.structs.asdict(msgspec.convert(body, request_type(operation))))

    assert [getattr(request, name) for name in names] == [None] * len(names)
