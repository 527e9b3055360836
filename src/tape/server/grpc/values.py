"""Procedures of values."""

from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.server.grpc.pages import page
from tape.wire import tape_pb2 as pb
from tape.wire.messages.known import VALUE


async def write_value(hall: Hall, request: pb.WriteValueRequest, caller: Caller) -> pb.ValueRecord:
    value = await hall.ledgers.values.write(
        request.namespace,
        request.key,
        request.value_json,
        None if request.if_version < 0 else request.if_version,
        request.writer,
        request.idempotency_key or None,
        caller,
    )
    return VALUE.message(value)


async def get_value(hall: Hall, request: pb.GetValueRequest, caller: Caller) -> pb.GetValueResponse:
    found = await hall.ledgers.values.find(request.namespace, request.key)
    return pb.GetValueResponse(found=not found.deleted, value=VALUE.message(found))


async def delete_value(hall: Hall, request: pb.DeleteValueRequest, caller: Caller) -> pb.DeleteValueResponse:
    values, place = hall.ledgers.values, (request.namespace, request.key)
    if_version = request.if_version if request.HasField("if_version") and request.if_version >= 0 else None
    was_there = not (await values.find(*place)).deleted
    value = await values.delete(*place, if_version, request.writer, request.idempotency_key or None, caller)
    return pb.DeleteValueResponse(deleted=was_there, version=value.version, value=VALUE.message(value))


async def list_values(hall: Hall, request: pb.ListValuesRequest, caller: Caller) -> pb.ListValuesResponse:
    found = await hall.ledgers.values.listed(request.namespace)
    carried, rest = page(found, lambda each: (each.key,), VALUE.message, request.cursor)
    return pb.ListValuesResponse(values=carried, next_cursor=rest)
