"""The .proto file: what is made of it, and what must never change in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from tape.server.grpc.methods import SERVICE, procedure
from tape.wire import tape_pb2 as pb
from tests.architecture.tree import PACKAGE
from tools.proto import generate

FROZEN = Path(__file__).with_name("frozen_proto.txt")
MADE = ("tape_pb2.py", "tape_pb2.pyi")


def test_the_generated_code_is_what_make_proto_makes(tmp_path: Path) -> None:
    generate(tmp_path)

    made = {name: (tmp_path / "tape" / "wire" / name).read_bytes() for name in MADE}

    assert made == {name: (PACKAGE / "wire" / name).read_bytes() for name in MADE}


def test_what_was_once_promised_stays() -> None:
    promised = set(FROZEN.read_text().splitlines())

    assert promised - set(lines()) == set()


def test_what_is_new_is_promised_from_now_on() -> None:
    promised = set(FROZEN.read_text().splitlines())

    assert set(lines()) - promised == set(), f"add these lines to {FROZEN.name}"


def test_every_procedure_is_served() -> None:
    served = {method.name: procedure(method.name) for method in SERVICE.methods}

    assert len({*served.values()}) == len(served) == len(SERVICE.methods)


def lines() -> Iterator[str]:
    """What a caller may hold on to: procedures, fields with numbers and types, members of enums."""
    for method in SERVICE.methods:
        kind = "streams" if method.server_streaming else "answers"
        yield f"procedure {method.name} takes {method.input_type.full_name} {kind} {method.output_type.full_name}"
    for message in pb.DESCRIPTOR.message_types_by_name.values():
        yield from (f"field {message.name} {field.name} {field.number} {type_of(field)}" for field in message.fields)
    for enum in pb.DESCRIPTOR.enum_types_by_name.values():
        yield from (f"member {enum.name} {value.name} {value.number}" for value in enum.values)


def type_of(field: Any) -> str:
    names = {getattr(FieldDescriptor, name): name for name in dir(FieldDescriptor) if name.startswith("TYPE_")}
    referred = field.message_type or field.enum_type
    presence = "repeated" if field.is_repeated else "optional" if field.has_presence else "plain"
    return f"{presence} {referred.full_name if referred else names[field.type].removeprefix('TYPE_').lower()}"
