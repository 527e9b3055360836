"""Handlers: the annotations of a function choose its arguments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from typing import Any

import anyio
import msgspec
import pytest

from tape.core.errors import UsageError
from tape.core.task import Task, TaskId, TaskStatus
from tape.matcher.dispatcher import WorkerConfig
from tape.work.answers import Dead
from tape.work.collected import Collection
from tape.work.envelope import Envelope
from tape.work.handler import Handler, handler
from tape.work.options import definition


class Rate(msgspec.Struct):
    pair: str
    value: float


@dataclass
class Money:
    pair: str
    value: float


class Model:
    """The interface of pydantic's models."""

    def __init__(self, value: object) -> None:
        self.value = value

    @classmethod
    def model_validate(cls, value: object) -> "Model":
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return cls(value)


class Named:
    def handle(self, envelope: Envelope) -> None: ...
    def __call__(self, envelope: Envelope) -> None: ...

    @classmethod
    def of_class(cls, envelope: Envelope) -> None: ...
    @staticmethod
    def static(envelope: Envelope) -> None: ...


def plain(envelope: Envelope) -> None: ...


@wraps(plain)
def wrapped(envelope: Envelope) -> None: ...


def named_again(envelope: Envelope) -> None: ...


SHADOWED = named_again
named_again = plain


def task(payload_json: str = '{"pair":"EURUSD","value":1.1}') -> Task:
    return Task(
        task_id=TaskId("t.1"), reaction_id="rule", shard=0, source_run_id="r1", source_seq=1, source_global_seq=7,
        kind="event", type="message", subject="/a", schema_version=1, ts_ms=5, payload_json=payload_json,
        prev_value_json="", status=TaskStatus.CLAIMED, attempt=1, attempts=1, next_attempt_at_ms=0, lease_owner="me",
        lease_expires_at_ms=0, last_error="", coalesced=0, created_at_ms=0, completed_at_ms=0, trace_id="", span_id="",
    )  # fmt: skip


async def call(made: Handler, *tasks: Task) -> Any:
    return await made.handle(tasks, anyio.CapacityLimiter(1))


async def test_a_payload_comes_as_the_type_that_is_asked_for() -> None:
    async def struct(rate: Rate) -> object:
        return rate

    async def plain(money: Money, envelope: Envelope) -> object:
        return money, envelope.global_seq

    async def model(model: Model) -> object:
        return model.value

    assert await call(handler(struct), task()) == Rate("EURUSD", 1.1)
    assert await call(handler(plain), task()) == (Money("EURUSD", 1.1), 7)
    assert await call(handler(model), task()) == {"pair": "EURUSD", "value": 1.1}


@pytest.mark.parametrize("annotation", [Any, object, dict, Mapping[str, object], Envelope])
async def test_a_function_without_a_payload_type_gets_the_envelope(annotation: object) -> None:
    async def handle(envelope):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return envelope

    handle.__annotations__["envelope"] = annotation

    assert isinstance(await call(handler(handle), task()), Envelope)


async def test_a_payload_that_does_not_fit_ends_its_task_as_dead() -> None:
    async def handle(rate: Rate) -> None: ...

    async def validate(model: Model) -> None: ...

    with pytest.raises(Dead, match="no Rate"):
        await call(handler(handle), task('{"pair":1}'))
    with pytest.raises(Dead, match="no Model: not an object"):
        await call(handler(validate), task("[]"))


async def test_a_batch_of_payloads_comes_as_a_list_of_the_type() -> None:
    async def handle(rates: list[Rate]) -> object:
        return rates

    assert await call(handler(handle, batch=5), task(), task()) == [Rate("EURUSD", 1.1)] * 2


def test_a_function_of_three_arguments_is_no_handler() -> None:
    def handle(one: object, two: object, three: object) -> None: ...

    with pytest.raises(UsageError, match="not 3 arguments"):
        handler(handle)


async def test_a_coroutine_that_a_plain_function_gives_is_waited_for() -> None:
    async def wait() -> str:
        return "done"

    answer = await handler(lambda: wait()).handle([task()], anyio.CapacityLimiter(1))

    assert answer == "done"


@pytest.mark.parametrize("timeout", [0, -1, timedelta(days=8), math.nan, math.inf, 1e20, 2**63, None, "5", True])
def test_a_timeout_that_cannot_be_is_refused(timeout: Any) -> None:
    with pytest.raises(UsageError, match="a deadline is"):
        definition("/a/**", {"timeout": timeout})


def test_a_process_needs_a_function_that_can_be_imported() -> None:
    with pytest.raises(UsageError, match="can be imported by its name"):
        handler(lambda: None, is_process=True)


@pytest.mark.parametrize("function", [Named().handle, Named.of_class, Named(), partial(plain)])
def test_a_process_needs_a_plain_function(function: Any) -> None:
    with pytest.raises(UsageError, match="can be imported by its name"):
        Collection().add(function, 1, {"reaction_id": "rule"}, is_process=True)


@pytest.mark.parametrize("function", [wrapped, SHADOWED])
def test_a_process_needs_the_function_that_its_name_stands_for(function: Any) -> None:
    made = handler(function, is_process=True)

    with pytest.raises(UsageError, match="can be imported by its name"):
        WorkerConfig(handlers={"rule": made})


@pytest.mark.parametrize("function", [Named.static, plain])
def test_a_process_takes_a_function_that_its_name_stands_for(function: Any) -> None:
    assert WorkerConfig(handlers={"rule": handler(function, is_process=True)}).handlers
