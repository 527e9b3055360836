"""Handlers: a user's function, plain or async, with the arguments that its signature asks for."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final, get_args, get_type_hints

import anyio
import msgspec

from tape.core.errors import UsageError
from tape.core.task import Task
from tape.work.answers import Dead
from tape.work.deadline import DEADLINE, check_deadline
from tape.work.envelope import Envelope, envelope
from tape.work.processes import call_in_process, check_importable, check_imported
from tape.work.threads import call_in_thread

MAX_BATCH: Final = 1_000

_ENVELOPES: Final = (inspect.Parameter.empty, Any, object, dict, Mapping, Envelope)


@dataclass(frozen=True, slots=True)
class Handler:
    """A user's function. If `batch` is more than 1, each argument is a list of up to that many."""

    function: Callable[..., Any]
    batch: int = 1
    takes: tuple[object, ...] = ()
    timeout: timedelta | None = None
    is_process: bool = False
    is_async: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        """Calls the function: in a child process if it is declared so, in a thread if it is not async."""
        envelopes = [envelope(task) for task in tasks] if self.takes else []
        if self.is_process:
            await call_in_process(self, envelopes, threads)
            return None
        arguments = self.arguments(envelopes) if self.takes else ()
        if self.is_async:
            return await self.function(*arguments)
        facts = {"reaction_id": tasks[0].reaction_id, "task_id": tasks[0].task_id}
        answer = await call_in_thread(partial(self.function, *arguments), threads, facts)
        return await answer if inspect.isawaitable(answer) else answer

    def check(self) -> None:
        """Raises an error at a worker's start if the function could not be called later."""
        if self.is_process:
            check_imported(self.function)

    def arguments(self, envelopes: Sequence[Envelope]) -> list[object]:
        if self.batch == 1:
            return [_converted(parameter_type, envelopes[0]) for parameter_type in self.takes]
        return [[_converted(_item(parameter_type), each) for each in envelopes] for parameter_type in self.takes]


def handler(
    function: Callable[..., Any],
    batch: int = 1,
    *,
    timeout: timedelta | float | None = DEADLINE,
    is_process: bool = False,
) -> Handler:
    """Wraps a function that takes nothing, the envelope, or a typed payload and the envelope."""
    deadline = None if timeout is None else check_deadline(timeout)
    if is_process:
        check_importable(function)
    if not 1 <= batch <= MAX_BATCH:
        raise UsageError(f"a batch is 1 to {MAX_BATCH:,} tasks, not {batch}")
    hints = _hints(function)
    names = [name for name, each in inspect.signature(function).parameters.items() if each.default is each.empty]
    if len(names) > 2:
        raise UsageError(f"a handler takes the envelope, or a payload and the envelope, not {len(names)} arguments")
    types = [hints.get(name, inspect.Parameter.empty) for name in names[:1]] + [Envelope] * (len(names) - 1)
    return Handler(function, batch, tuple(types), deadline, is_process)


def _hints(function: Callable[..., Any]) -> Mapping[str, object]:
    try:
        return get_type_hints(function)
    except NameError:
        return {}  # a name that only a type checker sees: the argument is the envelope


def _converted(parameter_type: object, given: Envelope) -> object:
    """The envelope, or its payload as a type. A payload that does not fit will never fit, so the task dies."""
    if parameter_type in _ENVELOPES or getattr(parameter_type, "__origin__", None) in _ENVELOPES:
        return given
    try:
        if validate := getattr(parameter_type, "model_validate", None):
            return validate(given.payload)
        return msgspec.convert(given.payload, type=parameter_type)
    except ValueError as error:  # what pydantic and msgspec raise are both ValueErrors
        raise Dead(f"the payload is no {getattr(parameter_type, '__name__', parameter_type)}: {error}") from error


def _item(parameter_type: object) -> object:
    return next(iter(get_args(parameter_type)), inspect.Parameter.empty)
