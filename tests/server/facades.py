"""Calls operations as a program does: by the methods that the nouns of the SDK have for them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import signature
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, get_type_hints

from tape.core import codec
from tape.core.outbox import OutboxRetention
from tape.operations.operation import Operation, OperationRequest
from tape.operations.surfaces import surfaces_of
from tape.sdk.nouns.journal_runs import RunFilters
from tape.sdk.nouns.node import AsyncNode
from tape.wire.operation_json import Json
from tape.wire.result_json import plain, write_result

Fields = Mapping[str, Any]

NAMES: Final = {"idempotency_key": "key", "custom_key": "key"}
VALUE_NAMES: Final = {"key": "name", "call_key": "key"}


def _session_event(request: Any) -> Fields:
    given = _given(request)
    event = given.pop("event")
    content = codec.decode(event.content_json)
    return {**given, "content": content, "event_id": event.id, "author": event.author}


def _retention(request: Any) -> Fields:
    return {"retention": OutboxRetention(**{each.name: getattr(request, each.name) for each in fields(request)})}


OWN: Final[Mapping[str, Callable[[Any], Fields]]] = MappingProxyType(
    {
        "reaction.register": lambda request: {"reaction": request.reaction},
        "outbox.retain": _retention,
        "session.append": _session_event,
    }
)  # methods that take a record where the request has its fields, or the other way round
NONE: Final[tuple[set[str], str]] = (set(), "")
UNTAKEN: Final[Mapping[str, tuple[set[str], str]]] = MappingProxyType(
    {
        "run.begin": ({"cause"}, "The worker of a reaction gives it for the runs that it begins."),
        "effect.pending": ({"include_pending", "include_unknown"}, "The method lists both."),
        "obligation.due": (
            {"include_pending", "include_committed_expired", "include_stuck"},
            "The method lists what a worker can claim; `stuck` lists the others.",
        ),
        "gate.send": ({"user", "session"}, "`send_to_session` takes them."),
        "timer.due": ({"claim", "claimer", "lease"}, "A worker claims one timer at a time, by `claim`."),
        "session.get": ({"before"}, "The method reads older events by itself, until it has all that were asked for."),
    }
)  # fields that the method of an operation does not take


async def call_by_facade(node: AsyncNode, operation: Operation, request: OperationRequest[Any]) -> Json | None:
    """The answer of an operation by its method; by its request if there is none, or none that takes all fields."""
    name, given = surfaces_of(operation).sdk, arguments(operation, request)
    if name is None or given.keys() & UNTAKEN.get(operation.name, NONE)[0]:
        return write_result(operation, await node.call(request))
    method = attrgetter(name)(node)
    if given.get("app") == node.app and "app" not in signature(method).parameters:
        given = {name: value for name, value in given.items() if name != "app"}
    result = await method(**given)
    kind = operation.result
    if is_dataclass(kind) and result is not None and not isinstance(result, kind):  # type: ignore[arg-type]
        return {fields(kind)[0].name: plain(result)}  # the method returns the first member of the result
    return write_result(operation, result)


def arguments(operation: Operation, request: OperationRequest[Any]) -> Fields:
    """The arguments of the method for what a request has beside its defaults."""
    own = OWN.get(operation.name)
    return own(request) if own else {_argument(operation, name): value for name, value in _given(request).items()}


def untaken(operation: Operation, node: AsyncNode) -> set[str]:
    """The fields of a request that its method does not take; the app is that of the node."""
    name = surfaces_of(operation).sdk
    if name is None or operation.name in OWN:
        return set()
    taken = get_type_hints(attrgetter(name)(node)).keys() | {*RunFilters.__annotations__, "app"}
    return {_argument(operation, each.name.removesuffix("_json")) for each in _flat(operation.request)} - taken


def _argument(operation: Operation, name: str) -> str:
    return (VALUE_NAMES if operation.noun == "value" else NAMES).get(name, name)


def _given(request: Any) -> dict[str, Any]:
    """What a request has beside its defaults; a text of JSON as the value that it holds."""
    found: dict[str, Any] = {}
    for each in fields(request):
        value = getattr(request, each.name)
        if each.name == "of":
            found |= _given(value)
        elif value != _default(each):
            is_json = each.name.endswith("_json")
            found[each.name.removesuffix("_json")] = codec.decode(value) if is_json else value
    return found


def _flat(kind: Any) -> Iterator[Field[Any]]:
    for each in fields(kind):
        yield from _flat(each.type) if each.name == "of" else (each,)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
