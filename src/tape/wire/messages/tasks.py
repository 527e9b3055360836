"""Reactions and tasks on the wire."""

from typing import Any, Final

from tape.core.errors import UsageError
from tape.core.explanation import Explanation, LifecycleEvent, TaskDetail
from tape.core.matched import ReactionRecord
from tape.core.predicate.parts import Part
from tape.core.predicate.predicate import Verdict
from tape.core.reaction import Reaction
from tape.core.task import Task
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping

PROGRESS: Final = ("last_global_seq", "lag", "errors", "last_error")

REACTION: Final = MessageMapping(Reaction, pb.Reaction)
RECORD: Final = MessageMapping(
    ReactionRecord, pb.Reaction, {"is_removed": "deleted", "cursor": "last_global_seq"}, {"reaction": NO_NAMES}
)
TASK: Final = MessageMapping(Task, pb.Task, {"span_id": "parent_span_id"})
LIFECYCLE_EVENT: Final = MessageMapping(LifecycleEvent, pb.LifecycleEvent)
TASK_DETAIL: Final = MessageMapping(TaskDetail, pb.TaskDetail)
PART: Final = MessageMapping(Part, pb.PredicatePart)
VERDICT: Final = MessageMapping(Verdict, pb.Verdict)
EXPLANATION: Final = MessageMapping(
    Explanation, pb.ExplainReactionResponse, {"cursor": "last_global_seq"},
    {"judgement": {"is_active": "active", "is_subject": "subject_matched"}},
)  # fmt: skip


def recorded(record: ReactionRecord, request: Any) -> pb.Reaction:
    """A reaction; its progress, which changes by itself, only for those who ask for it."""
    message = RECORD.message(record)
    if not getattr(request, "with_progress", True):
        for name in PROGRESS:
            message.ClearField(name)
    return message


def check_kind(message: pb.Reaction) -> None:
    if message.handler_kind == pb.HANDLER_KIND_UNSPECIFIED:
        raise UsageError("handler_kind must be 1 (agent), 2 (task) or 3 (publish); it is not specified")


def sent(reaction: Reaction) -> dict[str, Any]:
    """The fields of a reaction that differ in a message, where 0 stands for the default; the effect is the same."""
    last = 1 if reaction.retry_max == 0 else reaction.dlq_after_n
    return {"dlq_after_n": last, "retry_backoff_ms": reaction.retry_backoff_ms or 1, "with_progress": True}
