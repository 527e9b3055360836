"""A client made of the contract as it was first published, in this process beside the code of today's."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_tools import protoc

from tests.deadlines import DEADLINE_S

CONTRACTS: Final = Path(__file__).with_name("contracts")


class OldClient:
    """Calls a procedure by its name with the fields of its request, and notes which were called."""

    def __init__(self, messages: ModuleType, stub: Any) -> None:
        self.messages = messages
        self.called: set[str] = set()
        self._stub = stub

    @property
    def procedures(self) -> set[str]:
        return {*self.messages.DESCRIPTOR.services_by_name["Tape"].methods_by_name}

    def __getattr__(self, procedure: str) -> Callable[..., Any]:
        method = self.messages.DESCRIPTOR.services_by_name["Tape"].methods_by_name[procedure]
        request = getattr(self.messages, method.input_type.name)

        def call(**fields: Any) -> Any:
            self.called.add(procedure)
            return getattr(self._stub, procedure)(request(**fields), timeout=DEADLINE_S)

        return call


@contextmanager
def old_client(folder: Path, address: str) -> Iterator[OldClient]:
    """The code is generated into an empty folder."""
    run_protoc(f"--python_out={folder}", f"--grpc_python_out={folder}", str(CONTRACTS / "first.proto"))
    generated = folder / "first_pb2.py"
    # Two contracts of the same names need two descriptor pools when they are used by one process.
    generated.write_text(
        generated.read_text().replace("_descriptor_pool.Default()", "_descriptor_pool.DescriptorPool()")
    )
    sys.path.insert(0, str(folder))
    try:
        messages, services = import_module("first_pb2"), import_module("first_pb2_grpc")
    finally:
        sys.path.remove(str(folder))
    with grpc.insecure_channel(address.removeprefix("tape://")) as channel:
        yield OldClient(messages, services.TapeStub(channel))


def contract(name: str, folder: Path) -> FileDescriptorProto:
    """What a file of the folder `contracts` has."""
    described = folder / f"{name}.bin"
    run_protoc(f"--descriptor_set_out={described}", str(CONTRACTS / name))
    (file,) = FileDescriptorSet.FromString(described.read_bytes()).file
    return file


def promises(file: FileDescriptorProto) -> set[str]:
    """Everything in a contract that a client is generated from, as lines."""
    for field in (field for each in file.message_type for field in each.field):
        field.ClearField("json_name")  # which follows from the name; reflection leaves it out
    methods = [f"rpc {method}" for service in file.service for method in service.method]
    fields = [f"field {each.name}: {field}" for each in file.message_type for field in each.field]
    members = [f"member {each.name}: {value}" for each in file.enum_type for value in each.value]
    return {" ".join(line.split()) for line in (*methods, *fields, *members)}


def unknown_fields(message: Any) -> list[int]:
    """The numbers of the fields in a message that its class does not know."""
    found: Any = UnknownFieldSet(message)
    return [field.field_number for field in found]


def run_protoc(*arguments: str) -> None:
    assert protoc.main(["protoc", f"-I{CONTRACTS}", *arguments]) == 0
