"""The argument of a handler: the entry that matched, and which attempt of which task this is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.task import Task, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(Mapping[str, object]):
    """A read-only mapping; each key is an attribute too."""

    task_id: TaskId
    reaction_id: str
    attempt: int
    global_seq: int
    run_id: str
    seq: int
    kind: str
    type: str
    subject: str
    ts_ms: int
    schema_version: int
    payload: JsonValue
    trace_id: str
    prev_value_json: str

    def __getitem__(self, name: str) -> object:
        if name not in NAMES:
            raise KeyError(name)
        value: object = getattr(self, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


NAMES: Final = tuple(each.name for each in fields(Envelope))


def envelope(task: Task) -> Envelope:
    """The envelope of a claimed task; a payload that is not JSON reads as null."""
    return Envelope(
        task_id=task.task_id,
        reaction_id=task.reaction_id,
        attempt=task.attempt,
        global_seq=task.source_global_seq,
        run_id=task.source_run_id,
        seq=task.source_seq,
        kind=task.kind,
        type=task.type,
        subject=task.subject,
        ts_ms=task.ts_ms,
        schema_version=task.schema_version,
        payload=codec.parse(task.payload_json) if task.payload_json else None,
        trace_id=task.trace_id,
        prev_value_json=task.prev_value_json,
    )
