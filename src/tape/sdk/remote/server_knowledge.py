"""What a server of another version knows: procedures, and the fields of their requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message

from tape.core.errors import Unsupported
from tape.wire import tape_pb2 as pb
from tape.wire.known_messages import messages_of

OPTIONAL: Final = frozenset({"limit", "max_bytes", "with_progress"})  # an answer is larger, or lacks progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKnowledge:
    """The procedures of a server, and the messages of their requests with their fields.

    A server that cannot tell has no procedures here, and nothing is refused.
    """

    version: str = ""
    procedures: frozenset[str] = frozenset()
    messages: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _complete: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of_answer(cls, answer: pb.GetCapabilitiesResponse) -> "ServerKnowledge":
        messages = {each.name: frozenset(each.fields) for each in answer.messages}
        return cls(version=answer.version, procedures=frozenset(answer.procedures), messages=messages)

    @classmethod
    def of_file(cls, file: FileDescriptorProto) -> "ServerKnowledge":
        """That of an older server, from the file that its reflection returns."""
        messages = {each.name: frozenset(part.name for part in each.field) for each in file.message_type}
        return cls(procedures=frozenset(each.name for each in file.service[0].method), messages=messages)

    def fit(self, name: str, request: Message) -> Message:
        """The request without optional fields that the server does not know; raises `Unsupported` for anything else."""
        if self.procedures and name not in self.procedures:
            raise Unsupported(name, version=self.version)
        if not self.procedures or self._knows_all(request.DESCRIPTOR):
            return request
        fitting = type(request)()
        fitting.CopyFrom(request)
        self._check(name, fitting)
        return fitting

    def _knows_all(self, message: Any) -> bool:
        """Whether the server has all fields that requests of this type can have here."""
        if message.name not in self._complete:
            ours = messages_of([message])
            self._complete[message.name] = all(ours[each] <= self._fields(each) for each in ours)
        return self._complete[message.name]

    def _check(self, name: str, message: Any) -> None:
        known = self._fields(message.DESCRIPTOR.name)
        for part, value in message.ListFields():
            if part.name not in known and part.name in OPTIONAL:
                message.ClearField(part.name)
            elif part.name not in known:
                raise Unsupported(name, part.name, self.version)
            elif part.message_type is not None and not part.message_type.GetOptions().map_entry:
                for each in value if part.is_repeated else (value,):
                    self._check(name, each)

    def _fields(self, message: str) -> frozenset[str]:
        return self.messages.get(message, frozenset())
