"""Runs operations in this process."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias, TypeVar, get_type_hints

from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.errors import UsageError
from tape.core.page import fit_answer
from tape.operations.operation import OperationRequest

R = TypeVar("R")
RequestType: TypeAlias = type[OperationRequest[Any]]
Handler: TypeAlias = Callable[[Any, Caller], Awaitable[Any]]


def handlers_of(owner: object) -> Iterator[tuple[RequestType, Handler]]:
    """The public methods of an owner that take a request, by the type of the request."""
    if isinstance(owner, Handlers):
        yield from owner.by_request.items()
        return
    for name, method in inspect.getmembers(owner, inspect.iscoroutinefunction):
        request = get_type_hints(method).get("request")
        if request is not None and not name.startswith("_"):
            yield request, method


class Handlers:
    """The handlers of all operations of some owners; an owner may be other handlers."""

    def __init__(self, *owners: object) -> None:
        self.by_request = {request: handler for owner in owners for request, handler in handlers_of(owner)}

    async def call(self, request: OperationRequest[R], caller: Caller = PLAIN) -> R:
        """Runs an operation; of a list that has no pages, the result is what one answer carries."""
        handler = self.by_request.get(type(request))
        if handler is None:
            raise UsageError(
                f"this store cannot run {type(request).__name__}, because it has no ledgers; "
                "use a sqlite:///, postgresql:// or memory:// store"
            )
        result: R = _bounded(await handler(request, caller))
        return result


def _bounded(result: Any) -> Any:
    return fit_answer(result, codec.size) if type(result) is list else result
