"""The procedure that tells clients of other versions what this server knows."""

from functools import cache

from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.server.version import server_version
from tape.wire import tape_pb2 as pb
from tape.wire.known_messages import messages_of


async def get_capabilities(
    hall: Hall, request: pb.GetCapabilitiesRequest, caller: Caller
) -> pb.GetCapabilitiesResponse:
    return capabilities()


@cache
def capabilities() -> pb.GetCapabilitiesResponse:
    methods = pb.DESCRIPTOR.services_by_name["Tape"].methods
    messages = messages_of(method.input_type for method in methods)
    return pb.GetCapabilitiesResponse(
        version=server_version(),
        procedures=[method.name for method in methods],
        messages=[pb.KnownMessage(name=name, fields=sorted(fields)) for name, fields in messages.items()],
    )
