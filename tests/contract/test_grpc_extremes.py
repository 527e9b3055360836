"""Any value in a field of a request gets a clear error, and never an internal one."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tape.bus.journal import Journal
from tape.core.ports import Store
from tape.wire import tape_pb2 as pb
from tests.contract.backends import needs_ledgers
from tests.contract.serving import served

pytestmark = needs_ledgers

SERVICE = pb.DESCRIPTOR.services_by_name["Tape"]
METHODS = [method for method in SERVICE.methods if not method.server_streaming]
EXTREMES: dict[int, tuple[Any, ...]] = {
    FieldDescriptor.TYPE_INT32: (-(2**31), -1, 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), -1, 2**63 - 1),
    FieldDescriptor.TYPE_DOUBLE: (float("nan"), float("inf"), -1.0, 1e300),
    FieldDescriptor.TYPE_STRING: ("a\0b", "a/b", "é\u2028", "x" * 20_000),
    FieldDescriptor.TYPE_ENUM: (-1, 99),
}
REFUSALS = (
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "ABORTED",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
)
STRING = FieldDescriptor.TYPE_STRING
IDS_AT_THE_STORE = {"run_id", "task_id", "task_ids", "reaction_id", "reaction_ids", "subject_pattern", "owner"}
EMPTY = {"subject", "subject_pattern", "predicate_cel", "type", "compensator_ref", "traceparent", "content_type"}


@pytest.fixture
async def channel(store: Store, journal: Journal) -> AsyncIterator[Any]:
    async with served(store, journal) as url, grpc.aio.insecure_channel(url.removeprefix("tape://")) as channel:
        yield channel


async def test_no_value_of_a_field_breaks_the_server(channel: Any) -> None:
    run = await channel.unary_unary("/tape.v1.Tape/BeginRun")(
        pb.BeginRunRequest(app_name="a", user_id="u", session_id="s", invocation_id="i").SerializeToString()
    )
    run_id = pb.BeginRunResponse.FromString(run).run_id

    answers = [
        (await status(channel, method.name, request), method.name, field)
        for method in METHODS
        for field, request in extremes(plain(GetMessageClass(method.input_type), run_id))
    ]

    assert [answer for answer in answers if answer[0] not in ("OK", *REFUSALS)] == []
    assert {answer[0] for answer in answers} >= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}


async def test_u_0000_in_an_id_is_refused_by_every_store(channel: Any) -> None:
    begun = await channel.unary_unary("/tape.v1.Tape/BeginRun")(pb.BeginRunRequest(app_name="a").SerializeToString())
    run_id = pb.BeginRunResponse.FromString(begun).run_id

    answers = {
        (method.name, field): await status(channel, method.name, request)
        for method in METHODS
        for field, request in extremes(plain(GetMessageClass(method.input_type), run_id), {STRING: ("a\0b",)})
        if field in IDS_AT_THE_STORE
    }

    assert (
        len(answers) > 20 and {place: answer for place, answer in answers.items() if answer != "INVALID_ARGUMENT"} == {}
    )


async def status(channel: Any, name: str, request: Message) -> str:
    """Tape's own answer to a request."""
    try:
        await channel.unary_unary(f"/{SERVICE.full_name}/{name}")(request.SerializeToString())
    except grpc.aio.AioRpcError as error:
        is_ours = any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata())
        return str(error.code().name) if is_ours else f"{error.code().name} of the transport"
    return "OK"


def plain(kind: type[Message], run_id: str) -> Message:
    """A request with something ordinary in each field that has room for one thing."""
    usual = {
        FieldDescriptor.TYPE_STRING: "k1",
        FieldDescriptor.TYPE_ENUM: 1,
        FieldDescriptor.TYPE_DOUBLE: 1.0,
    }
    fields: dict[str, Any] = {}
    for field in kind.DESCRIPTOR.fields:
        if field.type in usual and not field.is_repeated and field.name not in EMPTY:
            fields[field.name] = "{}" if field.name.endswith("_json") else usual[field.type]
    return kind(**fields | ({"run_id": run_id} if "run_id" in fields else {}))


def extremes(request: Message, values: dict[int, tuple[Any, ...]] = EXTREMES) -> Iterator[tuple[str, Message]]:
    """The request with each of its fields at each of its extremes."""
    for field in request.DESCRIPTOR.fields:
        for value in values.get(field.type, ()):
            changed = type(request).FromString(request.SerializeToString())
            if field.is_repeated:
                getattr(changed, field.name).append(value)
            else:
                setattr(changed, field.name, value)
            yield field.name, changed
