"""Server reflection under both of its names: v1, which clients ask for first, and v1alpha, which older ones know."""

from collections.abc import Sequence
from typing import Any, Final

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToJson, Parse
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from tape.wire import tape_pb2

V1ALPHA: Final = reflection.SERVICE_NAME
V1: Final = V1ALPHA.replace("v1alpha", "v1")


def handlers(services: Sequence[str], proto: bytes = tape_pb2.DESCRIPTOR.serialized_pb) -> tuple[Any, ...]:
    """What gRPC calls for reflection; both versions have the same messages on the wire. `proto` is tape.proto."""
    servicer = reflection.aio.ReflectionServicer((*services, V1, V1ALPHA), pool=_pool(proto))
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    names = (V1, V1ALPHA)
    return tuple(grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method}) for name in names)


def _pool(proto: bytes) -> DescriptorPool:
    pool = DescriptorPool()
    for file in (proto, health_pb2.DESCRIPTOR.serialized_pb, reflection_pb2.DESCRIPTOR.serialized_pb):
        pool.AddSerializedFile(file)
    pool.Add(_v1())
    return pool


def _v1() -> FileDescriptorProto:
    """The file of v1: that of v1alpha under its new name, because grpcio-reflection has only the old one."""
    old = FileDescriptorProto.FromString(reflection_pb2.DESCRIPTOR.serialized_pb)
    return Parse(MessageToJson(old).replace("v1alpha", "v1"), FileDescriptorProto())
